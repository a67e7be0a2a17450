"""The page in a browser for curators: it does from a file to a release what the commands that it shows do."""
