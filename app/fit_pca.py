"""``foveate fit-pca``: the principal components of an encoder's embeddings, from pictures and videos."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text
from tyro.conf import Positional, arg

from foveate.app.standard_error import standard_error
from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.encoders.crops import crops, longest_side
from foveate.pipeline.encoders.fit import fit_projection
from foveate.pipeline.encoders.image_text import ImageTextEncoder, Picture, Vectors
from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.encoders.pca import COMPONENTS, Projection, save_projection
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import ClipSettings, SourceSettings, settings_problem, shown_value
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.settings_texts import text_of
from foveate.pipeline.sinks.destination import try_writing, write_whole
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.address import exists

_SOURCES = "Pictures and videos like those that will be queried; numbered pictures as frame_%04d.png."
_OUT = "The file to write."
_COMPONENTS = "Number of components, 1 to 16."
_EVERY = "Use every Nth frame of a video."
_PICTURES = "Maximum pictures taken from each source."
_LARGEST = 30_000  # of the steps and of the pictures: their product is a number of frames that can be counted


def _help(setting: str) -> str:
    """The help text of one of the model's settings."""
    return text_of("clip", setting)


def fit_pca(
    sources: Annotated[Positional[tuple[str, ...]], arg(metavar="SOURCE ...", help=_SOURCES)],
    out: Annotated[str, arg(metavar="FILE.npz", help=_OUT, aliases=["-o"])],
    model: Annotated[str, arg(metavar="NAME", help=_help("model"))] = "ViT-B-16",
    weights: Annotated[str | None, arg(metavar="FILE|TAG", help=_help("weights"))] = None,
    dense: Annotated[Literal["native", "windows"], arg(help=_help("dense"))] = "native",
    resolution: Annotated[int | None, arg(metavar="N", help=_help("resolution"))] = None,
    device: Annotated[str | None, arg(metavar="cpu|cuda", help=_help("device"))] = None,
    components: Annotated[int, arg(metavar="N", help=_COMPONENTS)] = COMPONENTS,
    every: Annotated[int, arg(metavar="N", help=_EVERY)] = 30,
    most: Annotated[int, arg(metavar="N", help=_PICTURES)] = 200,
) -> int:
    """Fit the file for --clip.pca, once per model: a PCA that reduces an embedding to 16 numbers.

    Every fifth picture is held out, to check how well similarity to texts is preserved.
    """
    _refuse(sources, out, components, every, most)
    try:
        settings = ClipSettings(model=model, weights=weights, dense=dense, resolution=resolution, device=device)
    except ValidationError as error:
        raise SettingsError(settings_problem(error)) from None
    _try(sources, out)
    encoder = open_model(settings)
    projection = fit_projection(encoder, _embedded(encoder, settings, sources, every, most), components)
    write_whole(Path(out), lambda part: save_projection(projection, part))
    _report(projection, out)
    return Exit.DONE


def _refuse(sources: Sequence[str], out: str, components: int, every: int, most: int) -> None:
    """Raise SettingsError for invalid arguments."""
    if not sources:
        raise SettingsError("SOURCE is missing; see foveate fit-pca --help")
    if Path(out).suffix != ".npz":
        raise SettingsError(f"--out must end in .npz, got {out!r}")
    if not 1 <= components <= COMPONENTS:
        raise SettingsError(f"--components must be 1 to {COMPONENTS}, got {shown_value(components)}")
    for name, value in (("every", every), ("most", most)):
        check_count(name, value, 1, _LARGEST)


def _try(sources: Sequence[str], out: str) -> None:
    """Open everything before the work begins, which may take hours. Raises SourceError, SinkError."""
    try_writing(Path(out))
    for address in sources:
        pipe = exists(address) and Path(address).is_fifo()
        if not pipe:  # which can be read only once
            open_source(address, SourceSettings(frames=1)).close()


def _embedded(
    encoder: ImageTextEncoder, settings: ClipSettings, sources: Sequence[str], every: int, most: int
) -> Iterator[Vectors]:
    """The vectors of each picture, float32[n, D], read as ``foveate run`` would."""
    for rgb in pictures(sources, every, most):
        for crop in crops(Geometry(rgb.shape[1], rgb.shape[0]), settings):
            vectors = encoder.encode_image(crop.pixels(rgb), longest_side(encoder, settings))
            yield vectors.reshape(-1, encoder.dimension)


def pictures(sources: Sequence[str], every: int, most: int) -> Iterator[Picture]:
    """R'G'B' uint8[H, W, 3] of every ``every``-th frame, at most ``most`` of each source. Raises SourceError."""
    for address in sources:
        source = open_source(address, SourceSettings(frames=every * most))
        found = False
        with closing(source):
            for frame in source:
                found = True
                if frame.index % every == 0:
                    yield picture_rgb(frame)
        if not found:
            raise SourceError(f"{source.info.name} holds no picture that can be read")


def _report(projection: Projection, out: str) -> None:
    """Print the result on standard error."""
    console = Console(file=standard_error(), highlight=False, soft_wrap=True)
    check = projection.check
    console.print(
        f"{len(projection.basis)} components of {projection.encoder} explain {projection.explained.sum():.1%} of the"
        f" variance; on {check['vectors']:.0f} held-out embeddings, similarity to texts correlates"
        f" {check['correlation']:.3f} with the exact one, and the most similar tenth agrees to"
        f" {check['top_agreement']:.1%}"
    )
    console.print(Text.assemble("wrote ", (out, "bold")))
