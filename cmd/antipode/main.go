// Command antipode is the server: `antipode node` runs one node of a location, `antipode gateway`
// a gateway to all locations, `antipode dns` a name server, `antipode witness` the witness of two, `antipode dev` two
// locations, a gateway and a name server in one process.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() {
	root := &cobra.Command{
		Use:           "antipode",
		Short:         "Geo-replicated storage with a read-access secondary",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(devCommand(), nodeCommand(), gatewayCommand(), dnsCommand(), witnessCommand(), clusterCommand(), certCommand(), configCommand(), inspectCommand(), healthCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "antipode:", err)
		os.Exit(1)
	}
}
