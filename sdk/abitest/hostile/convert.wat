;; makes an integer of what is no number

(func (export "run") (result i32) (i32.trunc_f64_s (f64.const nan)))
