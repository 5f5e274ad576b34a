;; run returns nothing
(func (export "run"))
