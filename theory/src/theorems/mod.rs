//! The statements, each as a type whose hypotheses are checked and whose conclusion is measured.
