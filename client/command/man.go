package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Man returns a command that writes the manual pages of the program that it is put in, from the help of its commands. Their
// date is that of $SOURCE_DATE_EPOCH, or today's. It is for packages, so no help lists it.
func Man() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages into a folder",
		Example: "  antipodectl man /tmp/man1",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: root.Name() + " " + root.Version, Manual: "Antipode"}, args[0])
		},
	}
}
