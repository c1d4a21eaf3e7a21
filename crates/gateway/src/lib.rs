//! The product.
