"""What becomes of a page of objects: decoded, evaluated by every policy that matches, and recorded without secrets."""
