"""A processor for small models: a token for each character, and a chat template as the families have them."""

from types import SimpleNamespace
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests.models.vision_language import END, IMAGE, PAD, START

TEMPLATE = (
    "{% for message in messages %}<start>{{ message.role }}:{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}<end>{% endfor %}"
    "{% if add_generation_prompt %}<start>assistant:{% endif %}"
)


def processor() -> Any:
    """With the attributes of a processor of transformers that a Reader uses."""
    vocabulary = {chr(32 + token): token for token in range(247)}
    vocabulary |= {"<image>": IMAGE, "<start>": START, "<end>": END, "<pad>": PAD}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=" "))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>",
        additional_special_tokens=["<image>", "<start>"], chat_template=TEMPLATE, clean_up_tokenization_spaces=False,
    )  # fmt: skip
    images = SimpleNamespace(image_mean=(0.5, 0.4, 0.3), image_std=(0.25, 0.3, 0.35))
    return SimpleNamespace(tokenizer=fast, image_processor=images, apply_chat_template=fast.apply_chat_template)
