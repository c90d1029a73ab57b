"""From settings to a result: processes, machines, engines and recovery around the client."""
