package runtime

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
)

// Documents are collections of JSON documents in the runtime's own store. What a
// command writes through a [DocumentTx] becomes durable together with the command's
// answer, so such a command happens exactly once.
//
// It is safe for concurrent use. Transactions that may write execute one after the other;
// keep them short. Embedders call its methods Update, and View to read only.
type Documents = document.Store

// A DocumentTx is the documents as one transaction sees them, its own writes
// included: its methods are Get, Scan, ScanIndex, Put, Delete, Emit, CountFor, BoundReads, OnRead and ReadEnough. It is not safe for
// concurrent use, and cannot be used after its transaction.
type DocumentTx = document.Tx

// A DocumentQuota bounds the bytes of the documents of an owner. It is given to CountFor of a
// [DocumentTx].
type DocumentQuota = document.Quota

// A DocumentIndex orders documents of a collection by values of theirs. It is given in
// [Options.Indexes], and read with ScanIndex of a [DocumentTx].
type DocumentIndex = document.Index

// A DocumentRange is a part of a [DocumentIndex].
type DocumentRange = document.Range

// A Descending value reverses the order of its field in a [DocumentIndex].
type Descending = document.Descending

// WithDocumentOwner returns a context whose transactions wait for others in the queue of an agent or a
// model, so that many of one do not keep those of others waiting; "" is a person.
func WithDocumentOwner(ctx context.Context, owner string) context.Context {
	return document.WithOwner(ctx, owner)
}

// Documents returns the runtime's documents.
func (rt *Runtime) Documents() *Documents { return rt.documents }
