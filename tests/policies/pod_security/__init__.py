"""Pod Security: labels, checks, templates and their pods, exemptions, and what a history says about them."""
