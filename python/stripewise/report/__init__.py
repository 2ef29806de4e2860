"""Pictures of results: figures as SVG, or as one HTML page with the figure and its numbers."""

from .figure import Figure, new_figure, plot_lines, save_figure

__all__ = ["Figure", "new_figure", "plot_lines", "save_figure"]
