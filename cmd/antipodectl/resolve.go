package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

// resolution is what fork resolve prints.
type resolution struct {
	Resolved []admin.ForkResolved `json:"resolved"`
}

func (t *tool) forkResolve() *cobra.Command {
	var keep string
	c := &cobra.Command{
		Use:   "resolve ACCOUNT|STREAM --keep LOCATION",
		Short: "Settle forked or lost streams, keeping the rows of one side",
		Long: `resolve settles the forks of an account, or of one stream, without a new copy of the
account. The stream goes on at once; its lane is compared, and each entity and blob that
differs becomes what it is at the side that is kept. What the other side had instead is kept
there in the lost-and-found: antipodectl fork found. Until the lane is equal the stream is
listed as settling, and Last Sync Time stays unavailable. Restarts of either location change
nothing.

--keep names the primary of the account, or its secondary. With the secondary, as after the
primary was recovered with loss, the primary takes what the secondary has: lost writes and
deletions come back, and all that the primary has written on these streams since they parted
is undone and kept in its lost-and-found. An entity or blob that a client writes after the
command stays as the client wrote it. A stream that is lost is settled for the primary alone:
the secondary lacks what it had acknowledged. A settlement for the secondary may be changed
to one for the primary, which then holds for what is left.

A fork of the catalog is refused: antipodectl failover unplanned keeps most, since the secondary
becomes the primary with all that it has. antipodectl account rebuild makes the copy again, and
moves what only the secondary has to its lost-and-found. Where a stream of the catalog is lost,
rebuild before the other streams are resolved, and do not fail over.`,
		Example: `  antipodectl fork list
  antipodectl fork resolve pictures --keep northcentralus
  antipodectl fork found list southcentralus`,
		Args: exactly("ACCOUNT|STREAM"),
		RunE: answer(t, func(ctx context.Context, args []string) (resolution, error) {
			return t.resolveForks(ctx, args[0], geo.Location(keep))
		}, writeResolved),
	}
	c.Flags().StringVar(&keep, "keep", "", "location whose rows are kept: the account's primary or its secondary")
	return c
}

// resolveForks settles the streams of an account, or one, that are stopped at their sources.
func (t *tool) resolveForks(ctx context.Context, of string, keep geo.Location) (out resolution, err error) {
	if keep == "" {
		return out, command.Wrong(errors.New("fork resolve needs --keep LOCATION"))
	}
	all, err := t.client.Forks(ctx)
	if err != nil {
		return out, err
	}
	found := slices.DeleteFunc(all.Forks, func(f admin.Fork) bool {
		return string(f.Account) != of && f.Stream != of || f.Side != admin.SideSource || f.Reason != "forked" && f.Reason != "lost" && f.Reason != "settling"
	})
	switch {
	case len(found) == 0 && len(all.Silent) > 0:
		return out, fmt.Errorf("no stream of %q is known to be forked or lost at its source, but %s does not answer", of, strings.Join(all.Silent, ", "))
	case len(found) == 0:
		return out, command.Wrong(fmt.Errorf("no stream of %q is forked or lost at its source: antipodectl fork list shows them", of))
	}
	slices.SortFunc(found, func(x, y admin.Fork) int { return cmp.Compare(x.Stream, y.Stream) })
	var refused refusals
	for _, f := range found { // One that is refused does not hold up the others.
		r, err := t.client.Resolve(ctx, f.Location, admin.ResolveFork{StreamName: f.Name(), Keep: keep})
		if err != nil {
			refused.add(f.Stream, err)
			continue
		}
		out.Resolved = append(out.Resolved, r)
	}
	if err = refused.err(); err != nil && len(out.Resolved) > 0 {
		return out, fmt.Errorf("%d of %d streams are settling, the others are not: %w", len(out.Resolved), len(found), err)
	}
	return out, err
}

// refusals are the errors of streams, where those that differ only in the stream are one: an account has up to 128.
type refusals struct {
	first []error
	more  map[string]int // by the error without the stream's name
	keys  []string
}

func (r *refusals) add(stream string, err error) {
	key := strings.ReplaceAll(err.Error(), stream, "")
	if slices.Contains(r.keys, key) {
		r.more[key]++
		return
	}
	if r.more == nil {
		r.more = map[string]int{}
	}
	r.first, r.keys = append(r.first, err), append(r.keys, key)
}

func (r *refusals) err() error {
	var all []error
	for i, err := range r.first {
		if n := r.more[r.keys[i]]; n > 0 {
			err = fmt.Errorf("%w (and %s)", err, check.Count(n, "more stream"))
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}

func writeResolved(w io.Writer, r resolution) {
	for _, s := range r.Resolved {
		_, _ = fmt.Fprintf(w, "%s (%s) is settling: the rows of %s are kept\n", s.Stream, s.Service, s.Keep)
	}
	_, _ = fmt.Fprintln(w, "antipodectl fork list shows them until both copies are equal")
}

func (t *tool) forkFound() *cobra.Command {
	c := group(&cobra.Command{
		Use:     "found",
		Short:   "Show, export and drop the lost-and-found of a location",
		Example: `  antipodectl fork found list southcentralus`,
	})
	c.AddCommand(t.foundList(), t.foundExport(), t.foundDrop())
	return c
}

func (t *tool) foundList() *cobra.Command {
	var account string
	c := &cobra.Command{
		Use:   "list LOCATION",
		Short: "List the rows that fork resolve has overwritten or deleted at a location",
		Long: `list shows each row of the lost-and-found of a location: what a row held before fork
resolve, or a client's write that came while the fork was being settled, overwrote or
deleted it there; and what only a copy had that was deleted there (account rebuild), whose
SETTLEMENT ends in #0. A row is kept once for each settlement. Nothing is ever dropped but by
fork found drop. KEPT is unreadable for an entry that cannot be decoded.`,
		Example: `  antipodectl fork found list southcentralus --account pictures`,
		Args:    exactly("LOCATION"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.Found, error) {
			out := admin.Found{Location: geo.Location(args[0]), Rows: []admin.FoundRow{}}
			err := t.eachFound(ctx, out.Location, admin.FoundQuery{Account: geo.Account(account)}, func(rows []admin.FoundRow) error {
				out.Rows = append(out.Rows, rows...)
				return nil
			})
			return out, err
		}, writeFound),
	}
	c.Flags().StringVar(&account, "account", "", "only the rows of this account")
	return c
}

// eachFound calls f with the rows of each page of the lost-and-found of a location, once at least.
func (t *tool) eachFound(ctx context.Context, l geo.Location, q admin.FoundQuery, f func([]admin.FoundRow) error) error {
	for more := true; more; {
		page, err := t.client.Found(ctx, l, q)
		if err == nil {
			err = f(page.Rows)
		}
		if err != nil {
			return err
		}
		if more = page.More; more {
			q.After = page.Rows[len(page.Rows)-1].Key
		}
	}
	return nil
}

func writeFound(w io.Writer, f admin.Found) {
	if len(f.Rows) == 0 {
		_, _ = fmt.Fprintf(w, "the lost-and-found of %s is empty\n", f.Location)
		return
	}
	rows := [][]string{{"ACCOUNT", "SERVICE", "CONTAINER", "OBJECT", "ROW", "BYTES", "PAYLOAD", "MISSING", "KEPT", "SETTLEMENT"}}
	for _, r := range f.Rows {
		kept := instantOrUnknown(r.Kept)
		if r.Unreadable != "" {
			kept = "unreadable"
		}
		rows = append(rows, []string{
			string(r.Account), r.Service, r.Container, r.Object, r.Row, strconv.FormatUint(r.Bytes, 10), strconv.FormatUint(r.PayloadBytes, 10),
			strconv.FormatUint(r.PayloadMissing, 10), kept, r.Settlement,
		})
	}
	table(w, rows)
}

func (t *tool) foundDrop() *cobra.Command {
	return t.dropCommand("Delete the rows of an account in the lost-and-found, for good",
		`drop deletes all rows of an account in the lost-and-found of a location, and lets their
payload be collected. Nothing brings them back: export them before. Without --yes it counts
them, and changes nothing.`,
		"antipodectl fork found drop LOCATION ACCOUNT", "antipodectl fork found export LOCATION ACCOUNT --to found", t.dropFound)
}

// dropFound counts the rows of an account in the lost-and-found, and deletes them with yes.
func (t *tool) dropFound(ctx context.Context, l geo.Location, account geo.Account, yes bool) (out dropped, err error) {
	err = t.eachFound(ctx, l, admin.FoundQuery{Account: account}, func(rows []admin.FoundRow) error {
		var drop admin.DropFound
		for _, r := range rows {
			drop.Keys = append(drop.Keys, r.Key)
			out.Bytes += r.Bytes
			out.PayloadBytes += r.PayloadBytes
		}
		if out.Entries += len(rows); !yes || len(rows) == 0 {
			return nil
		}
		d, err := t.client.DropFound(ctx, l, drop)
		out.Dropped += d.Dropped
		return err
	})
	return out, err
}
