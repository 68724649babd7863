"""The operator's page and API: an HTTP server in a process of its own, fed by the controller's Unix socket."""
