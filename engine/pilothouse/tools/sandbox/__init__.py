"""The sandbox: runs an agent's commands and file operations in a separate process that seals itself.

`local.local_sandbox` starts one on this machine, `pod.pod_sandbox` lets one in that a kubelet starts; `client.Sandbox`
speaks to one that has connected; `server` is the other side. The server process imports none of this package's client
side, so that it starts quickly.
"""
