"""The Cascade stage: warps the cache, scores, allocates the budget, samples the tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.attributes.vocabulary import TEXT
from foveate.pipeline.cascade.coverage import Coverage
from foveate.pipeline.cascade.depth import depth_of
from foveate.pipeline.cascade.feedback import Feedback, FrameFeedback
from foveate.pipeline.cascade.problem import Problem, Tokens
from foveate.pipeline.cascade.query_prior import (
    error_weight,
    errors_with_prior,
    hidden_error,
    reader_error_with_prior,
    stale_weight,
)
from foveate.pipeline.cascade.rate import FrameLimits, RateControl
from foveate.pipeline.cascade.rate_distortion import RateDistortion
from foveate.pipeline.cascade.region_tokens import FrameRegions
from foveate.pipeline.cascade.scores import Scores, peak, score_cells
from foveate.pipeline.cascade.strategies import channels_read, strategy, top_lod
from foveate.pipeline.cascade.temporal import Temporal
from foveate.pipeline.cascade.token_age import AgeMaps
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.colour import picture_rgb, to_rgb
from foveate.pipeline.cpu.flow import FlowSearch
from foveate.pipeline.cpu.noise import noise_error
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.cpu.reader import Reader
from foveate.pipeline.cpu.sampling import patches
from foveate.pipeline.cpu.upper import UpperLevels
from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import CELL, Map, Mask, tiles_to_cells
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.relevance.query_relevance import QueryRelevance
from foveate.pipeline.selection import Selection, Step
from foveate.pipeline.text.detected_text import DetectedText


def cascade(states: Iterable[State], plan: StreamPlan, feedback: Feedback) -> Iterator[Step]:
    """Yield one Step per State."""
    chooser: _Cascade | None = None
    allocation = plan.settings.allocation
    rate_control = None if allocation.budget_average is None else RateControl(allocation.burst, allocation.merge)
    try:
        for state in states:
            if chooser is None or state.update.keyframe in ("first", "size"):
                if chooser is not None:
                    chooser.close()
                chooser = _Cascade(state, plan, feedback, rate_control)
            yield Step(state.update.frame, chooser.select(state))
    finally:
        if chooser is not None:
            chooser.close()


_COLOURS = ("red", "green", "blue")
_EVOLVING = frozenset({"fixation", "gaze", "attention", "prev_attention", "prev_relevance", "prev_saliency"})


_AGES = ("embedding_age", "text_age")


class _Warped(NamedTuple):
    valid: Mask  # bool[grid]: cells whose warped maps may be reused
    trust: Map  # weight of the warped previous score of a moved cell, in [0, 1]
    flow: Flow | None


class _Scored(NamedTuple):
    scores: Scores  # blended with the previous frame's where that could be warped
    valid: Mask
    channels: dict[str, Map]
    first_pass: Map | None  # the score of the first of two passes


class _Chosen(NamedTuple):
    tokens: Tokens
    region: NDArray[np.int32] | None  # [K], with regions: the place of each token's region among the frame's


class _Cascade:
    """Chooses the tokens of a stream of frames of one size."""

    def __init__(self, state: State, plan: StreamPlan, feedback: Feedback, rate_control: RateControl | None) -> None:
        geometry, settings = state.update.geometry, plan.settings
        self._plan = plan
        self._rate_control = rate_control  # where the budget is an average
        self._settings = settings
        self._feedback = feedback
        feedback.resend_gaze()
        self._geometry = geometry
        weighed = frozenset() if plan.scorer is None else plan.scorer.channels
        self._read = channels_read(settings.allocation) | (weighed - {"pass1_score"})
        used = frozenset(settings.maps) | self._read
        self._query_relevance = None if plan.queries is None else QueryRelevance(plan.queries, geometry, used)
        self._reads_text = "text" in used
        self._detected_text = None if plan.detector is None else DetectedText(plan.detector, settings.ocr, geometry)
        self._temporal = Temporal(geometry, settings.cache, used)
        self._flow = FlowSearch(settings.cache.flow_level)
        self._ages = AgeMaps(geometry)
        self._strategy = strategy(settings.allocation)
        self._regions = None if plan.regions is None else FrameRegions(plan.regions, geometry, settings)
        in_stream = settings.allocation.memory == "stream"
        about = geometry, state.update.frame.subsampled, settings.allocation.interpolation
        self._reader = Reader(*about) if in_stream else None
        self._evolving = not _EVOLVING.isdisjoint(used)  # maps that change even where the picture does not
        self._settled: Selection | None = None  # the selection that an unchanged frame repeats
        self._in_debt = False  # whether the last frame had to pay more than the lowest price because of its debt

    def select(self, state: State) -> Selection:
        """The Selection of one frame."""
        update = state.update
        feedback = self._feedback.take(self._geometry)
        moved = self._regions is not None and self._regions.advance(update.frame.index)
        quiet = not update.writes and not feedback.anything and not moved
        if quiet and self._settled is not None:
            self._ages.advance_unchanged()
            selection = self._settled = _repeated(self._settled, update.frame)
        else:
            selection = self._choose(state, feedback)
            # Motion is zero one frame after the last change. A reader that gets no token at the lowest price is up to
            # date.
            up_to_date = self._reader is None or (len(selection) == 0 and not self._in_debt)
            settled = all(each is None or each.settled for each in (self._query_relevance, self._detected_text))
            self._settled = selection if quiet and up_to_date and settled and not self._evolving else None
        self._feedback.remember(selection, self._geometry)
        return selection

    def _choose(self, state: State, feedback: FrameFeedback) -> Selection:
        changed = np.asarray(tiles_to_cells(state.update.changed), np.bool_)
        self._ages.advance(changed, state.update.new_scene)
        warped = self._warp(state, changed)
        view = self._embedder_input(state, changed, warped, feedback)
        if self._detected_text is not None:
            state = replace(state, grid=dict(view.grid))
        scored = self._score(state, view, warped.trust, feedback)
        budget = feedback.budget or self._settings.rate
        fewest = budget if self._regions is None else self._regions.divide(budget)
        upper = UpperLevels(state.colours, top_lod(self._settings.allocation, self._geometry, fewest))
        limits = FrameLimits(budget, 0.0) if self._rate_control is None else self._rate_control.limits(budget)
        chosen = self._allocate(state, upper, scored, feedback, limits)
        self._in_debt = limits.debt > 0
        if self._rate_control is not None:
            self._rate_control.spend(len(chosen.tokens.lod))
        self._temporal.remember(scored.scores.score, scored.channels["saliency"], chosen.tokens, scored.valid)
        return self._selection(state, upper, scored, chosen, feedback)

    def _embedder_input(self, state: State, changed: Mask, warped: _Warped, feedback: FrameFeedback) -> EmbedderInput:
        """What the embedder reads of the frame; with a text detector, its map of text."""
        update, wanted = state.update, frozenset[int]()
        if self._query_relevance is not None:
            self._query_relevance.take(feedback)
            wanted = self._query_relevance.wanted
        about = update.frame, self._geometry, update.keyframe, changed, warped.flow, warped.valid
        view = EmbedderInput(*about, state.grid, wanted)
        if self._detected_text is None:
            return view
        asked = self._query_relevance is not None and self._query_relevance.asks_attribute(TEXT)
        text = self._detected_text.update(view, self._reads_text or asked)
        return replace(view, grid={**state.grid, "text": text})

    def _score(self, state: State, view: EmbedderInput, trust: Map, feedback: FrameFeedback) -> _Scored:
        valid, changed = view.valid, view.changed
        self._temporal.apply(feedback)
        participation = self._participation(view)
        channels = {**state.grid, "eccentricity": self._temporal.eccentricity}
        channels |= {name: self._channel(name, state) for name in self._read}
        scores, first_pass = self._score_passes(channels, participation, changed, feedback)
        if not feedback.query_changed:  # the previous score answers the previous query
            blend = trust * np.float32(self._settings.cache.blend)
            scores = scores._replace(score=scores.score + blend * (self._temporal.previous_score - scores.score))
        return _Scored(scores, valid, channels, first_pass)

    def _score_passes(
        self, channels: dict[str, Map], participation: Map | None, changed: Mask, feedback: FrameFeedback
    ) -> tuple[Scores, Map | None]:
        """The scores, and with two passes the score of the first."""
        linear = self._plan.scorer
        if self._settings.score.passes == 1:
            return score_cells(channels, participation, changed, linear), None
        channels["pass1_score"] = np.zeros(self._geometry.grid, np.float32)
        first_pass = score_cells(channels, participation, changed, linear).score
        channels["pass1_score"] = first_pass
        if feedback.gaze is None:
            channels["eccentricity"] = self._temporal.distance_to(peak(first_pass, self._geometry))
        return score_cells(channels, participation, changed, linear), first_pass

    def _participation(self, view: EmbedderInput) -> Map | None:
        if self._query_relevance is None:
            return None
        self._query_relevance.update(view)
        return self._query_relevance.combined()

    def close(self) -> None:
        """End the threads of embedder and detector."""
        if self._query_relevance is not None:
            self._query_relevance.close()
        if self._detected_text is not None:
            self._detected_text.close()

    def _warp(self, state: State, changed: Mask) -> _Warped:
        """Warp the cache to this frame.

        A cell that did not change needs no history: its score follows from the same pixels as before.
        """
        keyframe = state.update.keyframe
        nothing = np.zeros(self._geometry.grid, np.float32)
        if keyframe or not self._settings.cache.enabled:
            self._temporal.clear()
            self._flow.observe(state.picture)
            self._recompute(state)
            return _Warped(nothing.astype(np.bool_), nothing, None)
        flow = self._flow.search(state.picture, changed)
        valid = self._temporal.warp(flow)
        return _Warped(valid, nothing if flow is None else flow.confidence * (valid & changed), flow)

    def _recompute(self, state: State) -> None:
        """Recompute what is only warped between keyframes: clusters and depth."""
        if self._temporal.uses_clusters:
            self._temporal.cluster(self._grid_rgb(state))
        if self._temporal.uses_depth and self._plan.depth is not None:
            picture = picture_rgb(state.update.frame)
            self._temporal.set_depth(depth_of(picture, self._plan.depth, self._geometry))

    def _grid_rgb(self, state: State) -> NDArray[np.uint8]:
        return to_rgb(*state.colours, state.update.frame.colour)

    def _allocate(
        self, state: State, upper: UpperLevels, scored: _Scored, feedback: FrameFeedback, limits: FrameLimits
    ) -> _Chosen:
        update, levels, settings = state.update, state.levels, self._settings
        kept, errors = None, upper.errors(state.errors)
        if self._reader is not None and update.new_scene:
            self._reader.reset()  # nothing is known, so this frame covers the picture by itself
        elif self._reader is not None:
            noise = noise_error(settings.change, update.noise)
            kept = self._reader.compare(levels, update.written, update.changed, noise)
            errors = self._reader.with_residuals(errors)
        score = scored.scores.score
        weighs = settings.score.weighs(settings.allocation.strategy, feedback.gaze is not None)
        weight = np.float32(settings.score.floor) + score if weighs else np.ones_like(score)
        weight = weight * self._geometry.inside
        participation = scored.scores.participation
        if participation is not None:
            weight = weight * error_weight(participation)
            prior = state.errors[0], hidden_error(participation, weight), participation
            errors = errors_with_prior(errors, *prior)
            if self._reader is not None and kept is not None:
                stale = stale_weight(self._reader.peak_participation(participation), participation)
                kept = reader_error_with_prior(kept, self._reader.lod, stale, *prior)
        problem = Problem(
            self._geometry,
            limits.most,
            weight,
            errors,
            state.errors,
            kept,
            scored.channels,
            score,
            feedback.gaze,
            participation,
            limits.debt,
        )
        allocate = self._strategy.allocate
        chosen = _Chosen(
            *((allocate(problem), None) if self._regions is None else self._regions.allocate(problem, allocate))
        )
        if self._reader is not None:
            self._reader.paint(levels, upper, chosen.tokens, participation)
        return chosen

    def _selection(
        self, state: State, upper: UpperLevels, scored: _Scored, chosen: _Chosen, feedback: FrameFeedback
    ) -> Selection:
        update, frame, scores, tokens = state.update, state.update.frame, scored.scores, chosen.tokens
        coverage = Coverage(tokens, self._geometry, disjoint=self._regions is None)
        maps = [values for values in scores if values is not None]
        score, information, perspective, *participation = coverage.means(np.stack(maps))
        ages = self._ages.emit(tokens, coverage)
        side = CELL << tokens.lod.astype(np.int32)
        return Selection(
            index=frame.index,
            time=frame.time,
            width=frame.width,
            height=frame.height,
            keyframe=update.keyframe,
            changed=float(update.changed.mean()),
            recomputed=float((self._geometry.inside & ~scored.valid).sum() / self._geometry.cells),
            x=tokens.column * side + side // 2,
            y=tokens.row * side + side // 2,
            lod=tokens.lod,
            score=score,
            information=information,
            perspective=perspective,
            participation=participation[0] if participation else None,
            age=ages.age,
            fresh=ages.fresh,
            region=chosen.region,
            regions=() if self._regions is None else self._regions.names,
            patches=patches(state.levels, upper, tokens, frame.colour) if self._settings.patches else None,
            maps={name: self._map(name, state, scored) for name in self._settings.maps},
            extras=self._extras(feedback),
        )

    def _extras(self, feedback: FrameFeedback) -> dict[str, Any]:
        extras = {} if self._query_relevance is None else self._query_relevance.extras(feedback)
        if self._detected_text is not None:
            extras |= self._detected_text.extras()
        return extras if self._rate_control is None else extras | self._rate_extras()

    def _rate_extras(self) -> dict[str, Any]:
        """State of the rate control: the debt after this frame, in tokens, and the price per token in it."""
        assert self._rate_control is not None
        assert isinstance(self._strategy, RateDistortion)
        return {"debt": self._rate_control.debt, "price": self._strategy.price}

    def _map(self, name: str, state: State, scored: _Scored) -> Map:
        """One requested map, float32[grid]."""
        if name == "score":
            return scored.scores.score
        if name == "pass1_score" and scored.first_pass is not None:
            return scored.first_pass
        if name == "eccentricity":
            return scored.channels[name]
        return self._channel(name, state)

    def _channel(self, name: str, state: State) -> Map:
        """One channel that does not follow from the scores, float32[grid]."""
        if self._query_relevance is not None and name.startswith(("query", EMBEDDING)):
            return self._query_relevance.map(name.removesuffix("_similarity"))
        if name in state.grid:
            return state.grid[name]
        if name in _COLOURS:
            return np.asarray(self._grid_rgb(state)[..., _COLOURS.index(name)] / 255, np.float32)
        return self._temporal.channel(name)


def _repeated(last: Selection, frame: FrameView) -> Selection:
    """A settled Selection, one frame later."""
    fresh = np.zeros(len(last), np.bool_)
    repeated = replace(
        last, index=frame.index, time=frame.time, changed=0.0, recomputed=0.0, age=last.age + 1, fresh=fresh
    )
    ages = {name: last.extras[name] + 1 for name in _AGES if name in last.extras}
    return replace(repeated, extras=ages) if ages else repeated
