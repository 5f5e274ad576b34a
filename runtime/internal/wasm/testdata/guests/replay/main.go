//go:build wasip1

// Command replay makes host calls whose requests depend on everything that a
// careless guest may use: map order, randomness of both kinds, the clock, sleep
// and the order in which goroutines come to run.
package main

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/testdata/guests/shim"
)

func main() {}

//go:wasmexport describe
func describe() int32 {
	shim.Output(`{"name":"replay","version":"1","abi":1,"steps":[{"type":"replay","summary":"s","fields":{"type":"object"}}]}`)
	return 0
}

//go:wasmexport run
func run() int32 {
	switch shim.Input() {
	case "panic":
		panic("the guest gave up")
	case "memory":
		var keep [][]byte
		for {
			keep = append(keep, make([]byte, 1<<20))
			keep[len(keep)-1][0] = 1
		}
	case "world":
		_, err := os.ReadDir("/")
		shim.Output(fmt.Sprintf(`{"output":{"env":%d,"args":%d,"root":%t}}`, len(os.Environ()), len(os.Args), err == nil))
		return 0
	case "sleep":
		time.Sleep(time.Hour)
		shim.Output(`{"output":true}`)
		return 0
	}
	began := time.Now()
	shim.Eval(`{"expression":"` + order() + `"}`)
	shim.Eval(fmt.Sprintf(`{"expression":"%d %d"}`, rand.Uint64(), time.Now().UnixNano()))
	var b [8]byte
	crand.Read(b[:])
	shim.Eval(fmt.Sprintf(`{"expression":"%x"}`, b))
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	shim.Eval(fmt.Sprintf(`{"expression":"%d"}`, time.Since(began)))
	arrive := make(chan int, 8)
	for i := range cap(arrive) {
		go func() { time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond); arrive <- i }()
	}
	for range cap(arrive) {
		shim.Eval(fmt.Sprintf(`{"expression":"%d %s"}`, <-arrive, order()))
	}
	shim.Output(`{"output":"` + order() + `"}`)
	return 0
}

// order returns the keys of a map as this run meets them.
func order() (keys string) {
	for k := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10} {
		keys += k
	}
	return keys
}
