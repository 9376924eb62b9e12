// Cluster DNS: CoreDNS with the five plugins that a one-node test cluster needs, and none of the other forty.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// Queries pass the plugins in this order, whatever the order in the Corefile.
	dnsserver.Directives = []string{"ready", "bind", "errors", "cache", "kubernetes"}
	coremain.Run()
}
