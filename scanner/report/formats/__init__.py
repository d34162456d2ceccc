"""The formats of a report besides HTML: a module for each, with `render(document, into)`."""
