// Package commandtest writes the reference of a command line from its commands, for the tests that compare it with the
// page in docs/cli.
package commandtest

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// flagColumns is where lines of flags are wrapped.
const flagColumns = 110

// Reference returns the page of a program: every command that help lists, with the texts of its help. The version and
// the test that writes the page are not in it.
func Reference(root *cobra.Command) string {
	root.InitDefaultHelpCmd()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n<!-- Generated from the commands: go test ./cmd/%[1]s -run Reference -args -rewrite -->\n\n%s.\n",
		root.Name(), strings.TrimSuffix(root.Short, "."))
	if root.Long != "" {
		fmt.Fprintf(&b, "\n```\n%s\n```\n", strings.TrimSpace(root.Long))
	}
	if root.HasPersistentFlags() {
		fmt.Fprintf(&b, "\nFlags of all commands:\n\n```\n%s```\n", trimmed(root.PersistentFlags().FlagUsagesWrapped(flagColumns)))
	}
	for _, c := range root.Commands() {
		write(&b, c)
	}
	return b.String()
}

// write adds the section of a command, and those of the commands in it.
func write(b *strings.Builder, c *cobra.Command) {
	if !c.IsAvailableCommand() || c.Name() == "help" {
		return
	}
	if !c.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\n## %s\n\n```\n%s\n", c.CommandPath(), strings.TrimSpace(c.UseLine()))
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, "\n%s\n", trimmed(strings.TrimSpace(text)))
		if flags := c.LocalFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(b, "\nFlags:\n%s", trimmed(flags.FlagUsagesWrapped(flagColumns)))
		}
		if c.HasExample() {
			fmt.Fprintf(b, "\nExamples:\n%s\n", trimmed(c.Example))
		}
		b.WriteString("```\n")
		return
	}
	for _, in := range c.Commands() {
		write(b, in)
	}
}

// trimmed is a text without spaces at the ends of its lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}
