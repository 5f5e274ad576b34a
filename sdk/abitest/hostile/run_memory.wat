;; exports a memory as run
(memory (export "run") 1)
