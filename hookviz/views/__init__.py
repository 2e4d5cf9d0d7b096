from hookviz.views.channel_grid import channel_grid_figure
from hookviz.views.channel_health import ChannelHealth, channel_health_figure
from hookviz.views.channel_histogram import channel_histogram_figure, counts_over
from hookviz.views.channel_picture import channel_picture, maximum_of
from hookviz.views.drawing import LegendEntry
from hookviz.views.export import figure_bytes, npz_bytes, pdf_bytes, statistics_csv
from hookviz.views.gradient_flow import gradient_flow_figure
from hookviz.views.histogram import histogram_figure
from hookviz.views.kernel_picture import KernelPicture, kernel_picture
from hookviz.views.labels import number, value_range, value_text
from hookviz.views.likeness_by_depth import likeness_by_depth_figure
from hookviz.views.mosaic import Mosaic, mosaic, mosaic_picture
from hookviz.views.overlay import enlarge, overlay
from hookviz.views.palette import COLORMAPS
from hookviz.views.photo import channel_over_photo
from hookviz.views.picture import png_bytes, rgb_pixels
from hookviz.views.position_picture import cluster_colours, cluster_picture, pca_picture
from hookviz.views.ridge import ridge_figure
from hookviz.views.scaling import Limits
from hookviz.views.sequence import sequence_figure
from hookviz.views.share_histogram import share_histogram_figure
from hookviz.views.signed_log_axis import SignedLogAxis
from hookviz.views.single_value import single_value, value_figure
from hookviz.views.spread_by_depth import spread_by_depth_figure
from hookviz.views.tiling import TileGeometry, page_count
from hookviz.views.vector import vector_figure

__all__ = [
    "COLORMAPS",
    "ChannelHealth",
    "KernelPicture",
    "LegendEntry",
    "Limits",
    "Mosaic",
    "SignedLogAxis",
    "TileGeometry",
    "channel_grid_figure",
    "channel_health_figure",
    "channel_histogram_figure",
    "channel_over_photo",
    "channel_picture",
    "cluster_colours",
    "cluster_picture",
    "counts_over",
    "enlarge",
    "figure_bytes",
    "gradient_flow_figure",
    "histogram_figure",
    "kernel_picture",
    "likeness_by_depth_figure",
    "maximum_of",
    "mosaic",
    "mosaic_picture",
    "npz_bytes",
    "number",
    "overlay",
    "page_count",
    "pca_picture",
    "pdf_bytes",
    "png_bytes",
    "rgb_pixels",
    "ridge_figure",
    "sequence_figure",
    "share_histogram_figure",
    "single_value",
    "spread_by_depth_figure",
    "statistics_csv",
    "value_figure",
    "value_range",
    "value_text",
    "vector_figure",
]
