"""soft_top_k for PyTorch, with its gradient: the same numbers as in soft.py. Needs torch."""

from typing import Any

import torch

from foveate.pipeline.cascade.soft import soft_top_k, soft_top_k_gradient


class _SoftTopK(torch.autograd.Function):  # type: ignore[misc] # torch is not looked into
    @staticmethod
    def forward(context: Any, values: Any, count: int, temperature: float) -> Any:
        weights = soft_top_k(values.detach().cpu().double().numpy(), count, temperature)
        context.weights, context.temperature = weights, temperature
        return torch.from_numpy(weights).to(values)

    @staticmethod
    def backward(context: Any, upstream: Any) -> Any:
        gradient = soft_top_k_gradient(context.weights, context.temperature, upstream.cpu().double().numpy())
        return torch.from_numpy(gradient).to(upstream), None, None


def soft_top_k_tensor(values: Any, count: int, temperature: float) -> Any:
    """Weights, a tensor [N] like ``values``, through which gradients flow; see soft.soft_top_k. Computed on the CPU."""
    return _SoftTopK.apply(values, count, temperature)
