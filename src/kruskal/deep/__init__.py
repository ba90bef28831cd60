"""The deep model's passes over images: inference upwards, synthesis downwards, and their gradients."""
