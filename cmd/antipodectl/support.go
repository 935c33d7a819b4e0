package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/internal/clock"
)

const (
	// bundlePartMax bounds a part of a bundle, in bytes.
	bundlePartMax = 4 << 20
	// bundleWait is the zero value of --node-timeout.
	bundleWait = 15 * time.Second
)

// manifest is what a support bundle has: manifest.json in it, and what the command prints.
type manifest struct {
	File  string     `json:"file"`
	Made  admin.Time `json:"made"`
	Admin string     `json:"admin"`
	Parts []part     `json:"parts"`
	// Missing is what could not be had, with the error.
	Missing []missing `json:"missing"`
}

type part struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	// Cut: it was longer.
	Cut bool `json:"cut,omitempty"`
}

type missing struct {
	What  string `json:"what"`
	Error string `json:"error"`
}

func (t *tool) supportCommand() *cobra.Command {
	var file string
	var wait time.Duration
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write the state of all processes into one file, for those who look for a fault",
		Long: `support-bundle writes a .tar.gz with the status, readiness, events, accounts, forks and
reservations, and of the process that answers and of every node: version, configuration,
metrics and the stacks of all goroutines. manifest.json in it lists its parts, and what could
not be had with the error: a node that does not answer costs --node-timeout, and no more.

It holds no key of an account, no SAS, password, private key or token: files with secrets
appear by name, of URLs only scheme and host are kept, and what looks like a secret is
removed from all texts. It does name accounts, nodes, addresses and folders.

It needs the admin token. Each part has 4 MiB at most. Progress goes to stderr. Exit code 3: the
file is there, and something is missing in it.`,
		Example: `  antipodectl support-bundle
  antipodectl support-bundle --file /tmp/bundle.tar.gz --node-timeout 5s
  antipodectl support-bundle --output json | jq .missing`,
		Args: exactly(),
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if wait <= 0 {
				return command.Wrong(errors.New("--node-timeout is above zero"))
			}
			out, err := t.writeBundle(cmd.Context(), file, wait)
			if err == nil {
				err = t.print(out, func(w io.Writer) { writeManifest(w, out) })
			}
			if err == nil && len(out.Missing) > 0 {
				err = &command.Error{Code: command.Partial, Err: fmt.Errorf("%s of the bundle could not be had", check.Count(len(out.Missing), "part"))}
			}
			return err
		}),
	}
	c.Flags().StringVar(&file, "file", "", "`FILE` that is made, and must not exist (default antipode-support-TIME.tar.gz)")
	c.Flags().DurationVar(&wait, "node-timeout", bundleWait, "how `LONG` a part of the bundle is waited for")
	return c
}

func writeManifest(w io.Writer, m manifest) {
	_, _ = fmt.Fprintf(w, "%s %s in %s\n", check.Count(len(m.Parts), "part"), check.Are(len(m.Parts)), m.File)
	for _, miss := range m.Missing {
		_, _ = fmt.Fprintf(w, "missing: %s: %s\n", miss.What, miss.Error)
	}
}

// bundle is a support bundle under way.
type bundle struct {
	t    *tool
	out  manifest
	wait time.Duration
	made time.Time
	tar  *tar.Writer
}

func (t *tool) writeBundle(ctx context.Context, file string, wait time.Duration) (_ manifest, err error) {
	b := &bundle{t: t, wait: wait, made: clock.System{}.Now()}
	if file == "" {
		file = "antipode-support-" + b.made.UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	b.out = manifest{File: file, Made: admin.Time{Time: b.made}, Admin: t.client.URL(), Parts: []part{}, Missing: []missing{}}
	status, err := t.client.Status(ctx)
	if err != nil {
		return b.out, err // Nobody is there, and no file is made.
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return b.out, err
	}
	zip := gzip.NewWriter(f)
	b.tar = tar.NewWriter(zip)
	err = errors.Join(b.gather(ctx, status), b.tar.Close(), zip.Close(), f.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return b.out, err
}

// gather writes all parts, the manifest last.
func (b *bundle) gather(ctx context.Context, status admin.Status) error {
	c := b.t.client
	err := b.add("status.json", status)
	for _, doc := range []struct {
		name string
		ask  func(context.Context) (any, error)
	}{
		{"readiness.json", func(ctx context.Context) (any, error) { return c.Readiness(ctx) }},
		{"events.json", func(ctx context.Context) (any, error) { return c.Events(ctx) }},
		{"accounts.json", func(ctx context.Context) (any, error) { return c.Accounts(ctx) }},
		{"forks.json", func(ctx context.Context) (any, error) { return c.Forks(ctx) }},
		{"reservations.json", func(ctx context.Context) (any, error) { return c.Reservations(ctx) }},
	} {
		if err == nil {
			err = b.ask(ctx, doc.name, doc.ask)
		}
	}
	if err == nil {
		err = b.process(ctx, "process", c.Support)
	}
	for _, l := range status.Locations {
		for _, n := range l.Nodes {
			if err == nil {
				err = b.process(ctx, "nodes/"+n.Name, func(ctx context.Context) (admin.Support, error) { return c.NodeSupport(ctx, n.Name) })
			}
		}
	}
	if err != nil {
		return err
	}
	return b.add("manifest.json", b.out)
}

// limited is ctx for one part.
func (b *bundle) limited(ctx context.Context, what string) (context.Context, context.CancelFunc) {
	_, _ = fmt.Fprintf(b.t.errOut, "asking for %s\n", what)
	return context.WithTimeout(ctx, b.wait)
}

// lacks records what could not be had. The end of the command's own context ends the bundle.
func (b *bundle) lacks(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m := missing{what, admin.Scrub(b.t.explain(err))}
	if errors.Is(err, context.DeadlineExceeded) {
		m.Error = "no answer within " + b.wait.String() + ", see --node-timeout"
	}
	_, _ = fmt.Fprintf(b.t.errOut, "missing: %s: %s\n", m.What, m.Error)
	b.out.Missing = append(b.out.Missing, m)
	return nil
}

func (b *bundle) ask(ctx context.Context, name string, ask func(context.Context) (any, error)) error {
	within, cancel := b.limited(ctx, name)
	defer cancel()
	doc, err := ask(within)
	if err != nil {
		return b.lacks(ctx, name, err)
	}
	return b.add(name, doc)
}

// process writes what a process knows of itself, into a folder.
func (b *bundle) process(ctx context.Context, folder string, ask func(context.Context) (admin.Support, error)) error {
	within, cancel := b.limited(ctx, folder)
	defer cancel()
	s, err := ask(within)
	if err != nil {
		return b.lacks(ctx, folder, err)
	}
	for _, f := range []struct{ name, text string }{
		{"version.txt", s.Name + ": " + s.Version + "\n"}, {"config.yaml", s.Config}, {"metrics.txt", s.Metrics}, {"goroutines.txt", s.Goroutines},
	} {
		if err := b.write(folder+"/"+f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

// add writes a document as JSON. Anything like a secret is removed from each string before the string is written:
// JSON's escapes would hide where it begins.
func (b *bundle) add(name string, doc any) error {
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(scrubbed(plain)); err != nil {
		return err
	}
	return b.write(name, out.String())
}

// scrubbed is a document of JSON with all its strings scrubbed.
func scrubbed(doc any) any {
	switch v := doc.(type) {
	case string:
		return admin.Scrub(v)
	case []any:
		for i := range v {
			v[i] = scrubbed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = scrubbed(v[k])
		}
	}
	return doc
}

// write writes a part, without what looks like a secret. It cuts it afterwards: half a secret does not look like one.
func (b *bundle) write(name, text string) error {
	text = admin.Scrub(text)
	p := part{Name: name, Cut: strings.HasSuffix(text, admin.SupportCut)}
	if len(text) > bundlePartMax {
		text, p.Cut = strings.ToValidUTF8(text[:bundlePartMax-len(admin.SupportCut)], "")+admin.SupportCut, true
	}
	p.Bytes = len(text)
	h := &tar.Header{Name: "support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.made, Typeflag: tar.TypeReg}
	if err := b.tar.WriteHeader(h); err != nil {
		return err
	}
	b.out.Parts = append(b.out.Parts, p)
	_, err := io.WriteString(b.tar, text)
	return err
}
