package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeWait bounds what a press of the tab key may take.
const completeWait = 2 * time.Second

// named is what a word of a command line names; empty for what no server knows.
type named string

const (
	anAccount named = "ACCOUNT"
	aLocation named = "LOCATION"
	aNode     named = "NODE"
)

// complete has a shell complete the names of accounts, locations and nodes, wherever the use of a command or an option of
// its names one.
func (t *tool) complete(c *cobra.Command) {
	for _, in := range c.Commands() {
		t.complete(in)
	}
	if args := argumentsOf(c); len(args) > 0 {
		c.ValidArgsFunction = func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(given) >= len(args) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return t.names(cmd.Context(), args[len(given)]), cobra.ShellCompDirectiveNoFileComp
		}
	}
	for option, n := range map[string]named{"location": aLocation, "keep": aLocation, "account": anAccount} {
		if c.Flags().Lookup(option) != nil {
			_ = c.RegisterFlagCompletionFunc(option, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
				return t.names(cmd.Context(), n), cobra.ShellCompDirectiveNoFileComp
			}) // The option is there, and completed by this alone.
		}
	}
}

// argumentsOf lists what the arguments of a command name, by its use.
func argumentsOf(c *cobra.Command) (out []named) {
	for _, word := range strings.Fields(c.Use)[1:] {
		word = strings.TrimLeft(word, "([")
		if strings.HasPrefix(word, "-") || word == "|" {
			break
		}
		switch first, _, _ := strings.Cut(word, "|"); first {
		case "NAME":
			if out = append(out, anAccount); c.Name() == "create" || c.Name() == "free" {
				out[0] = "" // That is a new one, or one whose creation never ended.
			}
		default:
			out = append(out, named(first))
		}
	}
	return out
}

// names asks the server for the names of a kind; none without an answer: a shell has no place for an error.
func (t *tool) names(ctx context.Context, n named) (out []string) {
	if n != anAccount && n != aLocation && n != aNode || t.prepare() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWait)
	defer cancel()
	if n == anAccount {
		all, _ := t.client.Accounts(ctx)
		for _, a := range all {
			out = append(out, string(a.Name))
		}
		return out
	}
	s, _ := t.client.Status(ctx)
	for _, l := range s.Locations {
		if n == aLocation {
			out = append(out, string(l.Name))
			continue
		}
		for _, of := range l.Nodes {
			out = append(out, of.Name)
		}
	}
	return out
}
