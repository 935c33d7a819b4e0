package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/server/config"
)

func configCommand() *cobra.Command {
	output := formText
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "List the problems of a node.yaml",
		Long: "Reads a node.yaml and lists its problems: line, field, value, and what to write instead.\n" +
			"Exits with 1 if a node would refuse the file. Warnings alone leave it at 0.",
		Example: `  antipode config check /etc/antipode/node.yaml
  antipode config check --output json node.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkConfig(cmd.OutOrStdout(), args[0], output)
		},
	}
	check.Flags().VarP(&output, "output", "o", "text or json")
	return group(&cobra.Command{Use: "config", Short: "Check the configuration of a node"}, check)
}

// checked is what `config check --output json` prints.
type checked struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Problems config.Problems `json:"problems"`
}

func checkConfig(out io.Writer, file string, output form) error {
	_, problems, err := config.Load(file)
	var refused config.Problems
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	count := problems.Errors()
	if output == formJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(checked{file, count == 0, append(config.Problems{}, problems...)}); err != nil {
			return err
		}
	} else {
		for _, p := range problems {
			if _, err := fmt.Fprintln(out, p); err != nil {
				return err
			}
		}
		if count == 0 {
			_, err := fmt.Fprintf(out, "%s: good, with %d warnings\n", file, len(problems))
			return err
		}
	}
	if count > 0 {
		return fmt.Errorf("%s: %d errors, %d warnings", file, count, len(problems)-count)
	}
	return nil
}
