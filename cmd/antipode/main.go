// Command antipode is the server. `antipode node` runs one node of a location, `antipode gateway` a gateway to all
// locations, and `antipode dns` a name server. `antipode witness` runs the witness of two locations, and `antipode
// dev` two locations, a gateway and a name server in one process.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"antipode/client/command"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() {
	// What this program makes is for its user alone: account keys are in it, and what clients store. Here and not where files
	// are made, since libraries make some.
	unix.Umask(0o077)
	if err := root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "antipode:", err)
		os.Exit(int(command.CodeOf(err)))
	}
}

// root is the program's command. The errors of its commands' work have an exit code; those of the command line have none.
func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "antipode",
		Short:         "Geo-replicated storage with a read-access secondary",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.AddCommand(devCommand(), nodeCommand(), gatewayCommand(), dnsCommand(), witnessCommand(), clusterCommand(), certCommand(), configCommand(), inspectCommand(), healthCommand(), command.Man())
	marked(c)
	return c
}

// marked marks the errors of the work of a command, and of those in it.
func marked(c *cobra.Command) {
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error { return command.Tried(work(c, args)) }
	}
	for _, in := range c.Commands() {
		marked(in)
	}
}
