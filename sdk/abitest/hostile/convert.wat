;; converts a NaN to an integer

(func (export "run") (result i32) (i32.trunc_f64_s (f64.const nan)))
