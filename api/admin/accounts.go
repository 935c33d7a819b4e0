package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/services/storageerr"
)

func (p *port) accounts(c echo.Context) error {
	all, err := p.c.Accounts(c.Request().Context())
	if err != nil {
		return failed("list", "the accounts", err)
	}
	out := wire.AccountList{Accounts: []wire.AccountInfo{}}
	for _, a := range all {
		if concerns(a.Account, p.o.Location) {
			a.Endpoints = list(a.Endpoints)
			out.Accounts = append(out.Accounts, a)
		}
	}
	slices.SortFunc(out.Accounts, func(x, y wire.AccountInfo) int { return cmp.Compare(x.Name, y.Name) })
	return answer(c, http.StatusOK, out)
}

func (p *port) account(c echo.Context) error {
	a, err := p.find(c)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, a)
}

func (p *port) keys(c echo.Context) error {
	a, err := p.find(c)
	if err != nil {
		return err
	}
	k, err := p.c.Keys(c.Request().Context(), a.Name)
	if err != nil {
		return failed("read the keys of", "account "+string(a.Name), err)
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return answer(c, http.StatusOK, k)
}

// find returns the account a request names. One outside the port's scope does not
// exist for it.
func (p *port) find(c echo.Context) (wire.AccountInfo, error) {
	name := geo.Account(c.Param("name"))
	what := fmt.Sprintf("account %q", name)
	if !name.Valid() {
		return wire.AccountInfo{}, failed("find", what, storageerr.AccountNotFound)
	}
	a, err := p.c.Account(c.Request().Context(), name)
	if err == nil && !concerns(a.Account, p.o.Location) {
		err = storageerr.AccountNotFound
	}
	if err != nil {
		return wire.AccountInfo{}, failed("find", what, err)
	}
	a.Endpoints = list(a.Endpoints)
	return a, nil
}

func (p *port) createAccount(c echo.Context) error {
	var in wire.NewAccount
	if err := decode(c, &in); err != nil {
		return err
	}
	what := fmt.Sprintf("account %q", in.Name)
	switch {
	case !in.Name.Valid():
		return invalid("create", what, "the name needs 3 to 24 lower-case letters and digits")
	case in.Location == "":
		return invalid("create", what, "no location was given: name the one that becomes its primary")
	case !validKey(in.Key1) || !validKey(in.Key2):
		return invalid("create", what, "a key must be base64, or left out to have one made")
	}
	if err := p.controls("create", what, in.Location); err != nil {
		return err
	}
	a, err := p.c.CreateAccount(c.Request().Context(), in)
	if err != nil {
		return failed("create", what+" at "+string(in.Location), err)
	}
	p.o.Log.Info("account created", "account", a.Name, "primary", a.Primary, "secondary", a.Secondary, "redundancy", a.Redundancy)
	a.Endpoints = list(a.Endpoints)
	return answer(c, http.StatusCreated, a)
}

// updateAccount answers POST /v1/accounts/{name}/update. A port of a location changes the accounts whose
// primary it is.
func (p *port) updateAccount(c echo.Context) error {
	var in wire.UpdateAccount
	if err := decode(c, &in); err != nil {
		return err
	}
	name := geo.Account(c.Param("name"))
	what := fmt.Sprintf("account %q", name)
	a, err := p.find(c)
	if err != nil {
		return err
	}
	if err := p.controls("update", what, a.Primary); err != nil {
		return err
	}
	if in.Plans() {
		return p.planAccount(c, name, in)
	}
	out, err := p.c.UpdateAccount(c.Request().Context(), name, in)
	if err != nil {
		return failed("update", what, err)
	}
	if in.Failover != nil {
		p.o.Log.Info("failover of an account", "account", name, "type", in.Failover.Type, "from", out.Primary, "to", out.Secondary)
		out.Endpoints = list(out.Endpoints)
		return answer(c, http.StatusOK, out)
	}
	p.o.Log.Info("account updated", "account", name, "redundancy", out.Redundancy, "before", a.Redundancy, "rebuild", in.Rebuild, "when_late", in.WhenLate, "behind", out.Behind)
	out.Endpoints = list(out.Endpoints)
	return answer(c, http.StatusOK, out)
}

// planAccount answers what a failover of an account would do. It is no longer in coming than a read.
func (p *port) planAccount(c echo.Context, name geo.Account, in wire.UpdateAccount) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), p.o.ReadTimeout)
	defer cancel()
	out, err := p.c.UpdateAccount(ctx, name, in)
	if err != nil {
		return unplannable(fmt.Sprintf("account %q", name), err)
	}
	out.Endpoints = list(out.Endpoints)
	return answer(c, http.StatusOK, out)
}

// validKey takes base64 and the empty key that asks for a new one.
func validKey(k string) bool {
	_, err := base64.StdEncoding.Strict().DecodeString(k)
	return err == nil
}
