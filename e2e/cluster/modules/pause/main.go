// The first process of a Pod: it holds the Pod's namespaces open, and ends the zombies of a shared process namespace.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

func reap() {
	for {
		if child, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); child <= 0 || err != nil {
			return
		}
	}
}
