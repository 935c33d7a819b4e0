package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"antipode/server/config"
	"antipode/server/notices"
)

// noticesEnv and noticesKeyEnv are the environment's forms of --notices-url and of the key itself. A URL may hold a token, and
// command lines are shown to all users of the machine.
const (
	noticesEnv    = "ANTIPODE_NOTICES_URL"
	noticesKeyEnv = "ANTIPODE_NOTICES_KEY"
)

// noticesFlags name the receiver of notices of failovers.
type noticesFlags struct{ url, keyFile string }

func (f *noticesFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.url, "notices-url", "", "`URL` that each event of a failover is posted to (default $"+noticesEnv+")")
	flags.StringVar(&f.keyFile, "notices-key-file", "", "`FILE` with the key that signs them (default $"+noticesKeyEnv+", the key itself)")
}

// options returns the receiver: no URL is none. Errors do not repeat the URL.
func (f noticesFlags) options(getenv func(string) string) (o notices.Options, err error) {
	if o.URL = f.url; o.URL == "" {
		o.URL = getenv(noticesEnv)
	}
	switch {
	case o.URL == "" && f.keyFile != "":
		return o, errors.New("--notices-key-file goes with --notices-url")
	case o.URL == "":
		return o, nil
	case !config.ValidReceiver(o.URL):
		return o, errors.New("--notices-url: write the URL of the receiver, such as https://pager.example/antipode")
	case f.keyFile == "":
		o.Key = []byte(getenv(noticesKeyEnv))
		return o, nil
	}
	if o.Key, err = notices.ReadKey(f.keyFile); err != nil {
		return o, fmt.Errorf("--notices-key-file: %w", err)
	}
	return o, nil
}
