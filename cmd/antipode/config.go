package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/client/command"
	"antipode/server/config"
)

func configCommand() *cobra.Command {
	output := formText
	gateway, dns, witness := false, false, false
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "List the problems of a node.yaml, gateway.yaml, dns.yaml or witness.yaml",
		Long: "Reads a node.yaml, with --gateway a gateway.yaml, with --dns a dns.yaml, with --witness a witness.yaml, and lists\n" +
			"its problems: line, field, value, and what to write instead. Exits with 1 if the process would refuse the file.\n" +
			"Warnings alone leave it at 0.",
		Example: `  antipode config check /etc/antipode/node.yaml
  antipode config check --gateway /etc/antipode/gateway.yaml
  antipode config check --dns /etc/antipode/dns.yaml
  antipode config check --witness /etc/antipode/witness.yaml
  antipode config check --output json node.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			load := problemsOf(config.Load)
			switch {
			case gateway && dns || gateway && witness || dns && witness:
				return command.Wrong(errors.New("--gateway, --dns and --witness: want one of them"))
			case gateway:
				load = problemsOf(config.LoadGateway)
			case dns:
				load = problemsOf(config.LoadDNS)
			case witness:
				load = problemsOf(config.LoadWitness)
			}
			return checkConfig(cmd.OutOrStdout(), load, args[0], output)
		},
	}
	check.Flags().VarP(&output, "output", "o", "text or json")
	check.Flags().BoolVar(&gateway, "gateway", false, "the file is a gateway.yaml")
	check.Flags().BoolVar(&dns, "dns", false, "the file is a dns.yaml")
	check.Flags().BoolVar(&witness, "witness", false, "the file is a witness.yaml")
	return group(&cobra.Command{Use: "config", Short: "Check the configuration of a node, a gateway, a name server or a witness"}, check)
}

// problemsOf returns a loader of a configuration file as one that returns its problems only.
func problemsOf[T any](load func(string) (T, config.Problems, error)) func(string) (config.Problems, error) {
	return func(file string) (config.Problems, error) {
		_, problems, err := load(file)
		return problems, err
	}
}

// checked is what `config check --output json` prints.
type checked struct {
	File     string          `json:"file"`
	Valid    bool            `json:"valid"`
	Problems config.Problems `json:"problems"`
}

func checkConfig(out io.Writer, load func(string) (config.Problems, error), file string, output form) error {
	problems, err := load(file)
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
			_, err := fmt.Fprintf(out, "%s: good; warnings: %d\n", file, len(problems))
			return err
		}
	}
	if count > 0 {
		return fmt.Errorf("%s: errors: %d, warnings: %d", file, count, len(problems)-count)
	}
	return nil
}
