package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"antipode/client/admin"
	"antipode/client/command"
	"antipode/geo"
)

func (t *tool) accountUpdate() *cobra.Command {
	var in admin.UpdateAccount
	var rate *uint64
	var yes bool
	c := &cobra.Command{
		Use:   "update NAME (--redundancy REDUNDANCY [--yes] | --when-late POLICY)",
		Short: "Change the redundancy of an account, or what late changes do to its writes",
		Long: `update changes the redundancy of NAME. GRS and RA-GRS follow each other at any time: the data
stays, and the secondary is read or not. To LRS, the account ends its streams under a new
epoch, and its copy at the secondary is deleted: without --yes update says what only that has,
and changes nothing. It is kept in the lost-and-found there. From LRS, all its data is copied while
clients write (bootstrap): until the copy is complete, statistics say so, and the secondary
cannot be read. A change to LRS ends a bootstrap. --rate bounds it, and account rate changes that.

--when-late says what becomes of writes while changes of NAME have not reached the secondary
within the RPO target (rpo_target of a node, 15 minutes): alert lets them go on, as at first;
slow delays each one, from half of the target on, by a second at the target and by 2 s at
most; refuse answers them 503 ServerBusy until the changes have arrived. An event reports
late changes with each policy. A change to LRS sets alert.

It returns when the account's primary has changed, and says whether the other location has
the change, too. If not, as with the link cut, that follows by itself. One operation at a
time goes on for an account: another one is refused.`,
		Example: `  antipodectl account update pictures --redundancy GRS
  antipodectl account update scratch --redundancy LRS --yes
  antipodectl account update ledger --when-late refuse`,
		Args: exactly("NAME"),
	}
	c.RunE = operation(func(cmd *cobra.Command, args []string) error {
		if (in.Redundancy == "") == (in.WhenLate == "") {
			return command.Wrong(errors.New(c.CommandPath() + " needs one of --redundancy REDUNDANCY and --when-late POLICY"))
		}
		in.BytesPerSecond = given(c, rate)
		name := geo.Account(args[0])
		if in.Redundancy != "" && !strings.Contains(strings.ToUpper(in.Redundancy), "GRS") {
			return t.endCopy(cmd.Context(), name, in, yes)
		}
		out, err := t.client.UpdateAccount(cmd.Context(), name, in)
		if err != nil {
			return err
		}
		return t.print(out, func(w io.Writer) { writeUpdated(w, out) })
	})
	c.Flags().BoolVar(&yes, "yes", false, "delete the copy at the secondary")
	c.Flags().StringVar(&in.Redundancy, "redundancy", "", "`REDUNDANCY`: LRS, GRS or RA-GRS")
	rate = rateFlag(c)
	c.Flags().StringVar(&in.WhenLate, "when-late", "", "`POLICY`: alert, slow or refuse")
	return c
}

// endCopy leaves an account with one copy. Without yes it says what the other one alone has, and changes nothing; so it does
// not where there is no other one.
func (t *tool) endCopy(ctx context.Context, name geo.Account, in admin.UpdateAccount, yes bool) error {
	a, err := t.client.Account(ctx, name)
	if err != nil {
		return err
	}
	out := rebuilt{AccountUpdated: admin.AccountUpdated{AccountInfo: a}}
	t.aloneIn(ctx, a, &out)
	if out.Begun = yes || a.Secondary == ""; out.Begun {
		if out.AccountUpdated, err = t.client.UpdateAccount(ctx, name, in); err != nil {
			return err
		}
	}
	return t.print(out, func(w io.Writer) {
		if a.Secondary != "" {
			_, _ = fmt.Fprintf(w, "the copy of %s at %s %s\n", name, a.Secondary, map[bool]string{true: "is deleted", false: "would be deleted"}[out.Begun])
		}
		writeAlone(w, out, a.Secondary)
		if out.Begun {
			writeUpdated(w, out.AccountUpdated)
		} else {
			_, _ = fmt.Fprintln(w, nothingChanged)
		}
	})
}

// rateFlag adds the flag of a copy's rate.
func rateFlag(c *cobra.Command) *uint64 {
	rate := new(uint64)
	c.Flags().Var(command.Flag{Bytes: rate}, "rate", "`SIZE` per second that the copy takes at most, 0 for no bound (default: that of a copy under way, else of node.yaml)")
	return rate
}

// given is the rate if there was a flag, nil without.
func given(c *cobra.Command, rate *uint64) *uint64 {
	if !c.Flags().Changed("rate") {
		return nil
	}
	return rate
}

func (t *tool) accountRate() *cobra.Command {
	return &cobra.Command{
		Use:   "rate NAME SIZE",
		Short: "Change how fast the copy of an account may go",
		Long: `rate has the copy of NAME that is being made (bootstrap) take SIZE per second at most, rows and
payload together, and 0 for no bound. It holds at once, and stays over restarts and with
other leaders until the copy is complete. It is refused if no copy is being made.`,
		Example: `  antipodectl account rate pictures 20MiB
  antipodectl account rate pictures 0`,
		Args: exactly("NAME", "SIZE"),
		RunE: answer(t, func(ctx context.Context, args []string) (admin.AccountUpdated, error) {
			v, err := command.ParseSize(args[1])
			if err != nil {
				return admin.AccountUpdated{}, command.Wrong(err)
			}
			return t.client.UpdateAccount(ctx, geo.Account(args[0]), admin.UpdateAccount{BytesPerSecond: (*uint64)(&v)})
		}, func(w io.Writer, a admin.AccountUpdated) {
			_, _ = fmt.Fprintf(w, "account %s: the rate of its copy is set\n", a.Name)
		}),
	}
}

func writeUpdated(w io.Writer, a admin.AccountUpdated) {
	_, _ = fmt.Fprintf(w, "account %s is %s, primary %s, epoch %s\n", a.Name, a.Redundancy, a.Primary, a.Epoch)
	if a.WhenLate != "" {
		_, _ = fmt.Fprintf(w, "writes while changes are late: %s\n", a.WhenLate)
	}
	if a.Behind == "" {
		_, _ = fmt.Fprintln(w, "both locations have the change")
	} else {
		_, _ = fmt.Fprintf(w, "the other location does not have the change yet, and gets it by itself: %s\n", a.Behind)
	}
}
