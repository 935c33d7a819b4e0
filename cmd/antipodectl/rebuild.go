package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/check"
	"antipode/client/command"
	"antipode/geo"
)

const rebuildLong = `rebuild has all data of NAME copied to its secondary again, while clients write: for a copy
that was lost with its location, is forked, or has fallen out of the primary's outbox. The
account gets a new epoch. What the secondary has stays readable until it has the command,
and is then deleted; until the new copy is complete it cannot be read, and statistics say
bootstrap.

Without --yes it says what the secondary has that the primary does not, or has otherwise, and
changes nothing, as with --dry-run. These rows are kept in the lost-and-found of the secondary
before the copy is deleted (antipodectl fork found list), until fork found drop deletes them.

It is refused while the secondary has records that the primary lacks, as after the primary was
set back: fork resolve --keep takes them back, and of a fork of the catalog failover unplanned
keeps all of them. It is refused, too, while replication stands since the clocks of the two
locations disagree, and while the secondary does not answer. --force NAME, with the name of the
account once more, rebuilds all the same.

It returns when the account's primary has begun. What follows goes on by itself, also with
the secondary away: antipodectl account show NAME says how far it is, and account rate changes
how fast it may go.`

// rebuilt is what account rebuild prints.
type rebuilt struct {
	admin.AccountUpdated
	// Alone is what only the copy has, nil where that is not known; Unknown says why.
	Alone   *admin.CopyAlone `json:"only_the_copy_has,omitempty"`
	Unknown string           `json:"unknown,omitempty"`
	// Begun reports that the copy is made again.
	Begun bool `json:"begun"`
}

func (t *tool) accountRebuild() *cobra.Command {
	var rate *uint64
	var yes, dry bool
	var force string
	c := &cobra.Command{
		Use:   "rebuild NAME [--yes | --force NAME]",
		Short: "Make the copy of an account again from nothing",
		Long:  rebuildLong,
		Example: `  antipodectl account rebuild pictures
  antipodectl account rebuild pictures --yes
  antipodectl account rebuild pictures --yes --rate 20MiB
  antipodectl account rebuild pictures --force pictures`,
		Args: exactly("NAME"),
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		name := geo.Account(args[0])
		if force != "" && force != args[0] {
			return command.Wrong(fmt.Errorf("--force needs the name of the account whose copy is deleted: %s", name))
		}
		out, err := t.rebuild(cmd.Context(), name, admin.UpdateAccount{
			Rebuild: true, Force: geo.Account(force), DryRun: dry || !yes && force == "", BytesPerSecond: given(c, rate),
		})
		if err != nil {
			return err
		}
		if err := t.print(out, func(w io.Writer) { writeRebuilt(w, out) }); err != nil {
			return err
		}
		if out.Refused != "" {
			return &command.Error{Code: command.Failed, Err: fmt.Errorf("it would be refused, nothing was changed: %s", out.Refused)}
		}
		return nil
	})
	rate = rateFlag(c)
	c.Flags().BoolVar(&yes, "yes", false, "begin it")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what only the secondary has, and change nothing")
	c.Flags().StringVar(&force, "force", "", "the `NAME` once more: begin it although it would be refused")
	return c
}

// rebuild counts what only the copy has, and begins the rebuild unless that is a dry run.
func (t *tool) rebuild(ctx context.Context, name geo.Account, in admin.UpdateAccount) (out rebuilt, err error) {
	a, err := t.client.Account(ctx, name)
	if err != nil {
		return out, err
	}
	t.aloneIn(ctx, a, &out)
	out.AccountUpdated, err = t.client.UpdateAccount(ctx, name, in)
	var refused *admin.Error
	switch {
	case in.DryRun && errors.As(err, &refused) && refusesRebuild(refused.Code):
		out.AccountInfo, out.Refused = a, refused.Message
		return out, nil
	case err != nil:
		return out, err
	}
	out.Begun = !in.DryRun
	return out, nil
}

// aloneIn counts what only the copy of an account has, if there is one.
func (t *tool) aloneIn(ctx context.Context, a admin.AccountInfo, out *rebuilt) {
	if a.Secondary == "" {
		return
	}
	alone, err := t.client.CopyAlone(ctx, a.Secondary, admin.AloneQuery{Account: a.Name})
	if out.Alone = &alone; err != nil {
		out.Alone, out.Unknown = nil, err.Error()
	}
}

// refusesRebuild reports whether an error is a refusal that --force passes over.
func refusesRebuild(code string) bool {
	return code == admin.CodeSecondaryAhead || code == admin.CodeClocks || code == admin.CodeOtherAway
}

func writeRebuilt(w io.Writer, r rebuilt) {
	writeAlone(w, r, r.Secondary)
	if r.Begun {
		writeUpdated(w, r.AccountUpdated)
	} else if r.Refused == "" {
		_, _ = fmt.Fprintln(w, nothingChanged)
	}
}

const nothingChanged = "nothing was changed: --yes begins it"

// writeAlone says what only the copy at a location has, and where that is kept.
func writeAlone(w io.Writer, r rebuilt, at geo.Location) {
	kept := "would be"
	if r.Begun {
		kept = "are"
	}
	switch a := r.Alone; {
	case a == nil && r.Unknown != "":
		_, _ = fmt.Fprintf(w, "what only the copy at %s has is not known: %s\n", orDash(string(at)), r.Unknown)
	case a == nil:
	case a.Rows == 0 && !a.AtLeast:
		_, _ = fmt.Fprintf(w, "the copy at %s has nothing that the primary does not have\n", at)
	default:
		least := ""
		if a.AtLeast {
			least = "at least "
		}
		_, _ = fmt.Fprintf(w, "%s%s (%s, and %s of payload) of the copy at %s %s not at the primary, or not with that value; the newest change there is of %s\n",
			least, check.Count(a.Rows, "row"), size(a.Bytes), size(a.PayloadBytes), at, check.Are(a.Rows), instantOrUnknown(a.Newest))
		if a.AtLeast {
			_, _ = fmt.Fprintf(w, "not all is compared: %s\n", a.Reason)
		}
		_, _ = fmt.Fprintf(w, "they %s kept in the lost-and-found there before the copy is deleted: antipodectl fork found list %s --account %s\n", kept, at, r.Name)
	}
}
