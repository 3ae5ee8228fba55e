# Everything the checks need is installed into .venv; ffmpeg, which makes the test inputs, has to be there.
PYTHON ?= python3

.PHONY: test

test: .venv/ready .types/foveate
	@command -v ffmpeg >/dev/null || { echo "ffmpeg is missing: apt-get install ffmpeg" >&2; exit 1; }
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy -p foveate.app -p foveate.bench -p foveate.pipeline
	.venv/bin/python -m pytest -n 2

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q -e '.[dev]'
	touch $@

# Type checkers find the rooms under one name through these links.
.types/foveate:
	mkdir -p $@
	for room in app bench configs cuda pipeline; do ln -sfn ../../$$room $@/$$room; done
