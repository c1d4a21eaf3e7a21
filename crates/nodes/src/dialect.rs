//! What a node means by its errors.
