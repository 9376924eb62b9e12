"""The Kubernetes side of Pilothouse: watches, Pods and status. It knows the engine; the engine never knows it."""
