// Package pace shows that the pace which the server sets lets it bear any crowd that
// polls as it is told: a million in virtual time, on a model of the servers with the
// product's own interval code, and some ten thousand real ones on a real process, whose
// figures are held against those of the model.
//
// The model runs with all other tests. The real crowd is as large, and stays as long, as
// the flags say:
//
//	go test ./test/pace -count 1 -timeout 30m -v -run Real -args -crowd 50000 -for 5m
//
// It keeps both cores of a small machine busy, and means nothing beside other work; so
// without the flags only a small one comes, whose figures are not held against anything
// but that every answer is right.
package pace
