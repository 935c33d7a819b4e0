// Command antipode is the server. `antipode dev` runs two locations on one machine.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{
		Use:           "antipode",
		Short:         "Geo-replicated storage with a read-access secondary",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(devCommand(), certCommand(), configCommand(), inspectCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "antipode:", err)
		os.Exit(1)
	}
}
