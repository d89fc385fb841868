"""Whether there is a GPU that the engine can use, and if not, why."""

from __future__ import annotations

from malleable.errors import UnsupportedError

HINT = "install malleable[gpu] on a machine with an NVIDIA GPU, or use --engine cpu (engine='cpu')"


def why_not() -> str:
    """Why there is no GPU to use; empty if there is one."""
    try:
        from malleable.engine.gpu.cuda_api import cuda  # noqa: PLC0415
    except ImportError as error:
        return f"numba cannot be imported for CUDA: {error}"
    try:
        if not cuda.is_available():
            return "no CUDA device was found"
    except Exception as error:  # noqa: BLE001 - drivers fail in many ways
        return f"the CUDA driver says: {error}"
    return ""


def check() -> None:
    """Raise one line and a hint if there is no GPU."""
    reason = why_not()
    if reason:
        raise UnsupportedError(f"the GPU engine cannot run: {reason}", HINT)


def device_name() -> str:
    """What the device is called."""
    check()
    from malleable.engine.gpu.backends import default_backend  # noqa: PLC0415 - needs a device

    return default_backend().name
