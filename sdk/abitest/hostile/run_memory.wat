;; what is exported as run is a memory
(memory (export "run") 1)
