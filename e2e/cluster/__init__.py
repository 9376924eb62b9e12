"""A real one-node Kubernetes cluster for tests, made on this machine: `python -m e2e.cluster --help`.

Where a container engine answers and kind is installed, kind makes it. Elsewhere the cluster is native: the control
plane, kubelet, kube-proxy, etcd, CoreDNS and kube-router are compiled from their Go modules (`modules/`), Debian gives
containerd, runc and the CNI plugins, and all of them run as processes of this machine in one network namespace.

The package needs nothing but Python's standard library, so that it runs before any environment is set up.
"""
