module pilothouse.dev/e2e/cluster/pause

go 1.24
