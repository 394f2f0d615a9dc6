"""Sentences of customers to a shop, by what they are about: written for this package.

A word in braces is filled in by one of the words of its list in `SLOTS`.
"""

SLOTS = {
    "item": """kettle|desk lamp|rain jacket|backpack|coffee grinder|pair of boots|office chair|
        bicycle light|winter coat|blender|bookshelf|phone case|tent|camping stove|mirror|carpet|
        wall clock|set of knives|suitcase|yoga mat|toaster|headset|keyboard|blanket""",
    "colour": "black|white|dark blue|green|grey|red",
    "part": "handle|lid|zip|switch|left strap|plug|hinge|button|cable|frame|wheel|lining",
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday",
    "span": "two days|a week|ten days|three weeks|a month|a fortnight",
    "place": "the neighbour|the garage|the reception|the old address|the wrong floor|a parcel shop",
    "money": "12.90|19.50|24.99|38.00|49.90|65.00|119.00|240.50",
    "card": "credit card|bank account|gift card|debit card",
    "who": "my daughter|my brother|a colleague|my parents|a friend|our office",
}

TOPICS = {
    "delivery": """
My parcel with the {item} should have come on {day} and has not arrived.
The tracking page has said "in transit" for {span}.
The courier left the {item} at {place}.
Can you send the {item} to another address?
I was at home all day, but the driver did not ring.
When will the {item} be dispatched?
The van came on {day} and the driver carried the {item} upstairs.
The parcel came {span} late.
Half of the shipment is missing: there is no {item} in the box.
Please tell the carrier to leave the parcel at {place}.
Do you ship the {colour} {item} to islands?
The delivery of the {item} took {span}.
""",
    "billing": """
I was charged {money} twice for one {item}.
The invoice for the {item} has the wrong name on it.
Please send the bill for the {item} to our accountant.
My {card} was debited {money}, but the order says {money}.
The voucher was not taken off the price of the {item}.
Can I pay for the {item} in instalments?
There is a fee of {money} on my statement that I cannot explain.
I need a receipt with the tax number for the {item}.
The payment by {card} was declined on {day}.
How do I change the {card} that you charge?
You sent a reminder over {money}, although I paid on {day}.
The discount on the {item} shows on the invoice.
""",
    "returns": """
I would like to send the {item} back.
The {item} is too small, can I exchange it for a larger one?
I returned the {item} {span} ago and the refund has not come.
Please send me a label for returning the {item}.
The {colour} {item} was a present, and {who} already has one.
How long do I have to return the {item}?
I want to swap the {colour} {item} for a {colour} one.
You refunded {money} for the {item} that I sent back.
The box for the {item} is torn: can it still go back?
I changed my mind about the {item} and have not opened it.
The return of the {item} was refused at the parcel shop.
The exchange of the {item} took {span}.
""",
    "product": """
The {part} of the {item} broke after {span}.
Does the {item} fit into hand luggage?
The {item} makes a loud noise when it is switched on.
Is there a spare {part} for the {item}?
The manual of the {item} does not say how to fix the {part}.
The {colour} {item} looks just as in the picture.
How do I clean the {part} of the {item}?
The {part} of my {item} came loose on {day}.
Is the {item} waterproof?
{who} uses the {item} every day and the {part} is like new.
The {item} does not switch on any more.
What is the {item} made of?
""",
}

MOODS = {
    "content": """
Thank you for the quick answer.
I am very happy with it.
Everything else was perfect.
Your colleague on the phone was really kind and helpful.
I will gladly order from you again.
That was not a problem at all.
Great service, as always.
No complaints, I am impressed.
It is a lovely thing and worth every penny.
I did not expect it to go so smoothly.
""",
    "upset": """
I am very disappointed.
This is not acceptable.
I have called three times and nobody helped.
I will not order from you again.
Your hotline is useless.
It was not worth the money.
This is the second time, and I am tired of it.
Nobody answers my messages, which is rude.
I am not happy with this at all.
What a waste of time, I want to complain.
""",
}

NEITHER = """
My order number is below.
I ordered on {day}.
It was for {who}.
I have been a customer for years.
I wrote to you {span} ago as well.
You can reach me in the evening.
Photos are attached.
The order was placed in your shop in town.
I looked at the page with questions and answers first.
Please answer by email.
"""

GREETINGS = "Hello,|Good morning,|Dear team,|Hi,|Dear Sir or Madam,|||"
