package linear

import (
	"context"
	"fmt"
	"net/http"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/test/rest"
)

// row is the row key of every entity: keys are partitions.
const row = "r"

// send sends one operation. happened is false where it is certain that nothing did. An error
// is an answer that the operation cannot have.
func send(ctx context.Context, c *rest.Client, op Op) (out Result, happened bool, err error) {
	var a rest.Answer
	if op.Service == geo.Table {
		out.Value, a, err = sendEntity(ctx, c, op)
	} else {
		a, err = sendBlob(ctx, c, op)
		out.Value = string(a.Body)
	}
	if err != nil {
		return Result{Unknown: true}, !rest.NeverSent(err), nil
	}
	if a.Status == http.StatusOK {
		out.Tag = a.Header.Get("ETag")
		return out, true, nil
	}
	done, unknown, happened, err := concluded(op, a)
	return Result{Done: done, Unknown: unknown}, happened, err
}

// concluded takes an answer to a write: whether that was done, whether it is unknown, and whether anything happened, a
// refusal included.
func concluded(op any, a rest.Answer) (done, unknown, happened bool, err error) {
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent, http.StatusAccepted:
		return true, false, true, nil
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
		if a.Code != storageerr.TableNotFound.Code && a.Code != storageerr.ContainerNotFound.Code {
			return false, false, true, nil // The object's own state; the container is there.
		}
	case http.StatusServiceUnavailable:
		return false, false, false, nil
	case http.StatusInternalServerError:
		if a.Code == storageerr.OperationTimedOut.Code {
			return false, true, true, nil
		}
	}
	return false, false, true, fmt.Errorf("%+v is answered %v", op, a)
}

func sendEntity(ctx context.Context, c *rest.Client, op Op) (value string, a rest.Answer, err error) {
	e := rest.Entity{"PartitionKey": op.Key, "RowKey": row, "V": op.Value}
	switch op.Verb {
	case Read:
		var found rest.Entity
		found, a, err = c.GetEntity(ctx, Table, op.Key, row)
		value, _ = found["V"].(string)
	case Put:
		a, err = c.Replace(ctx, Table, "", e)
	case Insert:
		a, err = c.Insert(ctx, Table, e)
	case Swap:
		a, err = c.Replace(ctx, Table, op.Tag, e)
	case Delete:
		a, err = c.DeleteEntity(ctx, Table, "*", op.Key, row)
	}
	return value, a, err
}

func sendBlob(ctx context.Context, c *rest.Client, op Op) (rest.Answer, error) {
	var w rest.BlobWrite
	switch op.Verb {
	case Read:
		return c.GetBlob(ctx, Container, op.Key)
	case Delete:
		return c.DeleteBlob(ctx, Container, op.Key)
	case Insert:
		w.IfNoneMatch = "*"
	case Swap:
		w.IfMatch = op.Tag
	}
	return c.PutBlobWith(ctx, Container, op.Key, []byte(op.Value), w)
}
