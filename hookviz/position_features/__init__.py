"""Many channels at once: positions compared by the vectors of all their channels."""

from hookviz.position_features.clusters import UNKNOWN, cluster_positions
from hookviz.position_features.cosine import cosine_to
from hookviz.position_features.pca import PcaPicture, pca_rgb

__all__ = ["UNKNOWN", "PcaPicture", "cluster_positions", "cosine_to", "pca_rgb"]
