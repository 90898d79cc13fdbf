//! Transformations of functions: one file and one public function each.
