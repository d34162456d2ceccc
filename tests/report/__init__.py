"""Reports of made-up scans."""
