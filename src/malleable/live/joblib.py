"""`import malleable.live.joblib` makes joblib, and so scikit-learn, know the backend "malleable"."""

from malleable.live.clients.joblib_backend import MalleableBackend

__all__ = ["MalleableBackend"]
