# Everything the checks need is installed into .venv; ffmpeg makes the test inputs.
PYTHON ?= python3
APT := $(if $(shell command -v sudo),sudo )apt-get

.PHONY: test

test: .venv/ready .types/foveate
	command -v ffmpeg >/dev/null || { $(APT) update -q && $(APT) install -qy ffmpeg; }
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy -p foveate.app -p foveate.bench -p foveate.pipeline
	.venv/bin/python -m pytest -n 2

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv || { $(APT) update -q && $(APT) install -qy python3-venv && $(PYTHON) -m venv .venv; }
	.venv/bin/python -m pip install -q --upgrade pip
	.venv/bin/python -m pip install -q -e '.[dev]'
	touch $@

# Type checkers find the rooms under one name through these links.
.types/foveate:
	mkdir -p $@
	for room in app bench configs cuda pipeline; do ln -sfn ../../$$room $@/$$room; done
