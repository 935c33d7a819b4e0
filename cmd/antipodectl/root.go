package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/internal/clock"
)

// operations is a topic of the help. The table of operations writes its list: api/operation.
//
//go:embed operations.txt
var operations string

const (
	adminEnv     = "ANTIPODE_ADMIN"
	adminDefault = "http://127.0.0.1:10080"

	tokenEnv     = "ANTIPODE_ADMIN_TOKEN"
	tokenFileEnv = "ANTIPODE_ADMIN_TOKEN_FILE"
)

// tool is one run of antipodectl.
type tool struct {
	getenv func(string) string
	out    io.Writer
	errOut io.Writer
	// after is time.After; tests replace it.
	after func(time.Duration) <-chan time.Time
	// mono is the monotonic clock; tests replace it.
	mono func() time.Duration
	// now is the wall clock; tests replace it.
	now func() time.Time
	// colour: see coloured.
	colour bool
	// columns is columnsOf; tests replace it.
	columns func(out any) int

	adminURL  string
	tokenFile string
	output    string
	client    *admin.Client
}

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) command.Code {
	return newTool(getenv, out, errOut).run(ctx, args)
}

func newTool(getenv func(string) string, out, errOut io.Writer) *tool {
	return &tool{
		getenv: getenv, out: out, errOut: errOut, after: time.After, mono: clock.System{}.Mono, now: clock.System{}.Now, colour: coloured(out, getenv),
		columns: columnsOf,
	}
}

func (t *tool) run(ctx context.Context, args []string) command.Code {
	root := t.root()
	root.SetArgs(args)
	root.SetOut(t.out)
	root.SetErr(t.errOut)
	cmd, err := root.ExecuteContextC(ctx)
	code := command.CodeOf(err)
	switch code {
	case command.Done:
	case command.Usage:
		t.complain(fmt.Errorf("%w (%s --help shows how)", err, cmd.CommandPath()))
	default:
		t.complain(err)
	}
	return code
}

// complain writes an error on one line, which is wrapped on a terminal alone.
func (t *tool) complain(err error) {
	if t.output != "json" {
		_, _ = fmt.Fprintln(t.errOut, wrapped("antipodectl: "+t.explain(err), t.columns(t.errOut)))
		return
	}
	doc := admin.ErrorDocument{Error: admin.Error{Code: codeOf(err), Message: t.explain(err)}}
	b, _ := json.Marshal(doc) // Strings alone.
	_, _ = fmt.Fprintf(t.errOut, "%s\n", b)
}

// codeOf is the code of an error in JSON: the server's where that refused.
func codeOf(err error) string {
	var said *admin.Error
	switch {
	case errors.Is(err, admin.ErrUnreachable):
		return "Unreachable"
	case errors.Is(err, admin.ErrSilent):
		return "NoAnswer"
	case errors.As(err, &said) && said.Code != "":
		return said.Code
	case errors.Is(err, context.Canceled):
		return "Interrupted"
	}
	return command.CodeOf(err).String()
}

func (t *tool) explain(err error) string {
	var msg string
	var said *admin.Error
	switch {
	case errors.Is(err, admin.ErrUnreachable):
		msg = fmt.Sprintf("no server answers at %s: see that it runs, or name another with --admin URL or %s",
			t.client.URL(), adminEnv)
	case errors.Is(err, admin.ErrSilent):
		msg = fmt.Sprintf("%s takes calls and does not answer: its process may be paused, or its machine too busy: see both, or name another port with --admin URL", t.client.URL())
		if !t.client.Asked() {
			msg += "; nothing was changed"
		}
	case errors.As(err, &said) && said.Status == http.StatusUnauthorized:
		msg = said.Message + " (--token-file FILE names a copy of the server's token)"
	case errors.Is(err, context.Canceled) && t.client != nil && !t.client.Asked():
		msg = "interrupted: nothing was changed"
	case errors.Is(err, context.Canceled):
		msg = "interrupted: the operation may have been done, look at antipodectl status"
	default:
		msg = err.Error()
	}
	return check.OneLine(msg)
}

const rootLong = `antipodectl operates an Antipode deployment: it shows how locations, nodes and copies do,
manages accounts, and moves them from one location to the other.

First, when an alarm wakes you:
  antipodectl check                    what is wrong, worst first, and what to do
  antipodectl status                   locations, what is not well, and the secondaries worst off
  antipodectl why ACCOUNT              what holds the Last Sync Time of an account back
  antipodectl failover check ACCOUNT   what a failover would do now, and what blocks it
docs/runbooks has a page for each alarm.`

// rootEnd follows the commands and flags of the first screen.
const rootEnd = `
It talks to an admin port: --admin, else the environment's ` + adminEnv + `, else
` + adminDefault + `.

Keys and changes need the server's admin token. On the server's machine its user has it
by itself; elsewhere name a copy of the token file: --token-file, else the environment's
` + tokenFileEnv + `, or the token itself in ` + tokenEnv + `.

Exit codes: 0 done, 1 failed or wrong (one line on stderr says why), 2 wrong command line,
3 not whole, or warnings alone (check, verify).
`

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "antipodectl",
		Short:   "Show and operate an Antipode deployment",
		Version: version,
		Long:    rootLong,
		Example: `  antipodectl status --watch
  antipodectl account create pictures --location southcentralus`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return t.prepare()
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&t.adminURL, "admin", "", "admin port `URL` (default $"+adminEnv+" or "+adminDefault+")")
	f.StringVar(&t.tokenFile, "token-file", "", "`FILE` with the admin token (default $"+tokenFileEnv+", or what a server on this machine names)")
	f.StringVarP(&t.output, "output", "o", "text", "`FORM` of the output: text or json")
	root.CompletionOptions.HiddenDefaultCmd = true
	group(root)
	root.SetHelpTemplate(root.HelpTemplate() + "{{if not .HasParent}}" + rootEnd + "{{end}}")
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Accounts:", []*cobra.Command{t.accountCommand()}},
		{"Replication:", []*cobra.Command{t.checkCommand(), t.statusCommand(), t.whyCommand(), t.lagCommand(), t.verifyCommand(), t.forkCommand()}},
		{"Failover:", []*cobra.Command{t.failoverCommand(), t.lostCommand(), t.drillCommand()}},
		{"Nodes and ranges:", []*cobra.Command{
			t.nodesCommand(), t.eventsCommand(), t.nodeCommand(), t.locationCommand(), t.rangeCommand(), t.clusterCommand(), t.dashboardsCommand(), t.supportCommand(),
		}},
		{"Development:", []*cobra.Command{t.linkCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(command.Man(), &cobra.Command{Use: "operations", Short: "Which operations of the protocol are not built", Long: strings.TrimSpace(operations)})
	t.complete(root)
	return root
}

// prepare checks the common flags and makes the client.
func (t *tool) prepare() error {
	if t.output != "text" && t.output != "json" {
		return command.Wrong(fmt.Errorf("--output is text or json, not %q", t.output))
	}
	url := t.adminURL
	if url == "" {
		url = t.getenv(adminEnv)
	}
	if url == "" {
		url = adminDefault
	}
	c, err := admin.New(url, nil)
	if err != nil {
		return command.Wrong(err)
	}
	t.client = c
	return t.chooseToken()
}

// chooseToken gives the client a token that the user names. Without one the client finds the token
// file of a server on this machine.
func (t *tool) chooseToken() error {
	file := t.tokenFile
	if file == "" {
		file = t.getenv(tokenFileEnv)
	}
	if file != "" {
		t.client.UseToken(func() (admin.Token, error) { return admin.ReadTokenFile(file) })
		return nil
	}
	if text := t.getenv(tokenEnv); text != "" {
		token, err := admin.ParseToken(text)
		if err != nil {
			return command.Wrong(fmt.Errorf("%s: %w", tokenEnv, err))
		}
		t.client.UseToken(func() (admin.Token, error) { return token, nil })
	}
	return nil
}

// group makes a command that only holds others. Called alone it prints its help; an unknown word
// is a usage error.
func group(c *cobra.Command) *cobra.Command {
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return command.Wrong(fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0]))
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return c
}

// operation marks the error of a command's work as one, unless it has an exit code.
func operation(f func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return command.Tried(f(cmd, args)) }
}

// answer runs a command that makes one call and prints the document it returns.
func answer[T any](t *tool, call func(ctx context.Context, args []string) (T, error), text func(io.Writer, T)) func(*cobra.Command, []string) error {
	return operation(func(cmd *cobra.Command, args []string) error {
		doc, err := call(cmd.Context(), args)
		if err != nil {
			return err
		}
		return t.print(doc, func(w io.Writer) { text(w, doc) })
	})
}

// exactly takes the named arguments, no more and no fewer.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return command.Wrong(fmt.Errorf("%s needs %s", cmd.CommandPath(), strings.Join(names, " ")))
		case len(args) > len(names):
			return command.Wrong(fmt.Errorf("%s does not take %q", cmd.CommandPath(), args[len(names)]))
		}
		return nil
	}
}

// print writes doc as JSON, or as text does.
func (t *tool) print(doc any, text func(io.Writer)) error {
	if t.output == "json" {
		b, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return fmt.Errorf("encode the answer: %w", err)
		}
		return t.write(append(b, '\n'))
	}
	var b strings.Builder
	text(&b)
	return t.write(t.paint(b.String()))
}

func (t *tool) write(b []byte) error {
	if _, err := t.out.Write(b); err != nil {
		return fmt.Errorf("could not write the output: %w", err)
	}
	return nil
}
